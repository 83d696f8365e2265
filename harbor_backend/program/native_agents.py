"""How each of Harbor's own agents is brought to the rollout's model endpoint.

``TABLE`` holds the agents that need more than the ordinary way; every other
registered agent that takes an OpenAI-compatible endpoint goes that way.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from osmosis_ai.rollout.container.files import GATEWAY_PORT

ENDPOINTLESS = frozenset({"oracle", "nop"})
"""Agents without a model: they run reference solutions, or nothing."""

KEY_VARIABLE = "OPENAI_API_KEY"
_URL_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_OPENAI = "openai/"
_OPENCODE_PROVIDER = "osmosis-rollout"
# The agent's own choice of endpoint; ours always wins.
_CONNECTION = ("base_url", "model_api_key_name", "model_api_format", "skip_model_parsing")
# litellm asks the network for a price list at import, and tries for seconds where there is none.
_NO_PRICE_LIST = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@dataclass(frozen=True)
class Access:
    """Where an agent finds its model: an OpenAI-style base URL, and a bearer token for it."""

    url: str
    key: str = field(repr=False)


SANDBOX_ACCESS = Access(f"http://127.0.0.1:{GATEWAY_PORT}/v1", "osmosis-placeholder-key")
"""What an agent inside the sandbox sees: the relay, and a key that opens nothing."""

type Endpoint = Callable[[Access, str], Mapping[str, Any]]


@dataclass(frozen=True)
class NativeAgentSetup:
    """One row of the table.

    ``runs`` is where the agent's model calls are made. ``endpoint`` makes, from
    an ``Access`` and a model name, constructor arguments that win over the
    caller's, and ``defaults`` are those that lose. ``model_prefix`` is how the
    agent is told the provider. ``made`` gets the agent once its constructor has
    used its arguments. ``probe`` is a shell command that succeeds where
    the image holds the agent already, ``remedy`` what puts it there.
    """

    runs: Literal["host", "sandbox"]
    endpoint: Endpoint
    defaults: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    model_prefix: str = _OPENAI
    made: Callable[[Any], None] | None = None
    probe: str | None = None
    remedy: str = "install the agent in the task's environment/Dockerfile"

    def model_name(self, name: str) -> str:
        """The name under which the agent asks for ``name``: never another provider's."""
        bare = name.removeprefix(_OPENAI).removeprefix(self.model_prefix)
        return f"{self.model_prefix}{bare}"

    def arguments(
        self, given: Mapping[str, Any], model_name: str, access: Access
    ) -> dict[str, Any]:
        """The agent's constructor arguments: defaults, the caller's, the endpoint's."""
        own = {name: value for name, value in given.items() if name not in _CONNECTION}
        return _merged(_merged(self.defaults, own), self.endpoint(access, model_name))

    def environment(self, access: Access) -> dict[str, str]:
        """Variables of the agent's processes; the host's access never goes into the sandbox."""
        if self.runs == "host":
            return dict(self.env)
        urls = dict.fromkeys(_URL_VARIABLES, access.url)
        return {**self.env, **urls, KEY_VARIABLE: access.key}


def _terminus_2(access: Access, _: str) -> dict[str, Any]:
    # Other backends of this agent (tinker) have an endpoint of their own.
    return {
        "api_base": access.url,
        "llm_kwargs": {"api_key": access.key},
        "llm_backend": "litellm",
    }


def _forget_key(agent: Any) -> None:
    """Its client has the key by now, and its trajectory lists the arguments."""
    arguments = {k: v for k, v in agent.options.llm_kwargs.items() if k != "api_key"}
    agent.options = agent.options.model_copy(update={"llm_kwargs": arguments or None})


def _mini_swe_agent(access: Access, _: str) -> dict[str, Any]:
    return {"base_url": access.url}


def _opencode(access: Access, model_name: str) -> dict[str, Any]:
    """A provider of our own in its configuration, so that no built-in one is ever asked."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": access.url, "apiKey": f"{{env:{KEY_VARIABLE}}}"},
        "models": {model_name.removeprefix(f"{_OPENCODE_PROVIDER}/"): {}},
    }
    return {
        "opencode_config": {
            "provider": {_OPENCODE_PROVIDER: provider},
            "model": model_name,
            "small_model": model_name,
        },
        "skip_model_parsing": True,
    }


# What calls the model beside the conversation: its calls would belong to no turn of the sample.
_OPENCODE_DEFAULTS = {
    "compaction": {"auto": False, "prune": False},
    "agent": {"title": {"disable": True}},
}

TABLE: Mapping[str, NativeAgentSetup] = {
    "terminus-2": NativeAgentSetup(
        runs="host",
        endpoint=_terminus_2,
        defaults={"enable_summarize": False, "record_terminal_session": False},
        made=_forget_key,
    ),
    "mini-swe-agent": NativeAgentSetup(
        runs="sandbox",
        endpoint=_mini_swe_agent,
        env={**_NO_PRICE_LIST, "MSWEA_COST_TRACKING": "ignore_errors"},
        probe='PATH="$HOME/.local/bin:$PATH"; command -v mini-swe-agent',
        remedy="put 'RUN pip install mini-swe-agent' into the task's environment/Dockerfile",
    ),
    "opencode": NativeAgentSetup(
        runs="sandbox",
        endpoint=_opencode,
        defaults={"opencode_config": _OPENCODE_DEFAULTS},
        env={"OPENCODE_DISABLE_AUTOUPDATE": "true", "OPENCODE_DISABLE_MODELS_FETCH": "true"},
        model_prefix=f"{_OPENCODE_PROVIDER}/",
        probe='[ -f "$HOME/.nvm/nvm.sh" ] && . "$HOME/.nvm/nvm.sh"; command -v opencode',
        remedy="put 'RUN npm install -g opencode-ai' into the task's environment/Dockerfile",
    ),
}


def setup_for(agent: str) -> NativeAgentSetup:
    """Return the row of a registered agent, or the ordinary way for it.

    The first call imports the agent's class, which takes seconds where it needs litellm.

    Raises:
        ValueError: the agent is unknown, cannot be imported, or cannot be
            pointed at an OpenAI-compatible endpoint.
    """
    kind = agent_class(agent)
    return TABLE.get(agent) or _ordinary(agent, kind)


def agent_class(agent: str) -> Any:
    """Import and return the class that Harbor registered for ``agent``.

    Raises:
        ValueError: it is unknown, or its module cannot be imported.
    """
    for name, value in _NO_PRICE_LIST.items():
        os.environ.setdefault(name, value)
    # Harbor parses every model name with litellm: imported here, not in the first rollout.
    import harbor.llms.litellm_config  # noqa: F401
    from harbor.agents.factory import AgentFactory
    from harbor.models.agent.name import AgentName

    return AgentFactory.get_agent_class(AgentName(agent))


def _ordinary(agent: str, kind: Any) -> NativeAgentSetup:
    """Harbor's own connection options, for an agent that says that it takes them."""
    from harbor.agents.installed.base import BaseInstalledAgent
    from harbor.models.model_api_format import ModelApiFormat

    connection = kind.MODEL_CONNECTION
    formats = [] if connection is None else connection.supported_api_formats
    ours = (ModelApiFormat.OPENAI_CHAT_COMPLETIONS, ModelApiFormat.OPENAI_RESPONSES)
    spoken = next((name for name in ours if name in formats), None)
    if not kind.capabilities.base_url or spoken is None:
        known = ", ".join(formats) or "its own provider's"
        raise _refusal(agent, f"takes no OpenAI-compatible endpoint: its API formats are {known}")
    if not issubclass(kind, BaseInstalledAgent):
        raise _refusal(agent, "calls its model from this process and gives its key to the sandbox")

    def endpoint(access: Access, _: str) -> dict[str, Any]:
        return {
            "base_url": access.url,
            "model_api_key_name": KEY_VARIABLE,
            "model_api_format": spoken.value,
        }

    return NativeAgentSetup("sandbox", endpoint, env=_NO_PRICE_LIST)


def _refusal(agent: str, why: str) -> ValueError:
    return ValueError(
        f"agent={agent!r} {why}. Use {', '.join(sorted(TABLE))} or another agent of Harbor's, or "
        "run it in an AgentWorkflow"
    )


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid on ``base``, dictionaries in each other, both left as they are."""
    result = dict(base)
    for name, value in over.items():
        below = result.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[name] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return result
