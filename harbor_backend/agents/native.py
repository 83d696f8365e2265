"""One of Harbor's own agents, brought to the rollout's model endpoint."""

from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.trial.config import AgentConfig
from harbor.models.trial.result import AgentInfo

from harbor_backend.agents.model_route import model_route
from harbor_backend.agents.wiring import (
    ENDPOINTLESS,
    SANDBOX_ACCESS,
    Access,
    Wiring,
    agent_class,
    wiring_for,
)
from harbor_backend.ready import make_ready
from harbor_backend.trials import TrialRecord, find_trial

_IMPORT_PATH = f"{__name__}:NativeAgent"

type _Run = Callable[[str, BaseEnvironment, AgentContext], Coroutine[Any, Any, None]]


def native_config(
    record: TrialRecord,
    agent: str,
    arguments: dict[str, Any],
    model_name: str,
    setup_timeout_sec: float | None,
) -> AgentConfig:
    """Harbor's configuration of a native agent; it is written to disk without the endpoint.

    Raises:
        ValueError: the agent needs a model, and the rollout has no chat URL.
    """
    limits: dict[str, Any] = {
        "override_timeout_sec": record.agent_timeout_sec,
        "override_setup_timeout_sec": setup_timeout_sec,
    }
    if agent in ENDPOINTLESS:
        return AgentConfig(name=agent, kwargs=dict(arguments), **limits)
    if record.endpoint is None:
        raise ValueError(
            f"agent={agent!r} needs a model, and rollout {record.request.id!r} has no "
            "chat_completions_url: send one with the rollout (a public provider is never asked "
            "instead)"
        )
    wiring = wiring_for(agent)
    model_name = wiring.model_name(model_name)
    kwargs = {
        "trial_key": record.key,
        "agent": agent,
        "arguments": wiring.arguments(arguments, model_name, SANDBOX_ACCESS),
    }
    return AgentConfig(import_path=_IMPORT_PATH, model_name=model_name, kwargs=kwargs, **limits)


class NativeAgent(BaseAgent):
    """Wraps the agent that Harbor registered under a name.

    It is made with its endpoint here, in this process, and never from a file.
    An agent whose calls come from the sandbox gets the relay for as long as it
    runs; one whose calls come from the host is given the endpoint itself.
    Everything else is the wrapped agent's.
    """

    def __init__(
        self,
        logs_dir: Path,
        model_name: str | None = None,
        *,
        trial_key: str,
        agent: str,
        arguments: dict[str, Any],
        extra_env: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(logs_dir=logs_dir, model_name=model_name, **kwargs)
        wiring = wiring_for(agent)
        self._inside = wiring.runs == "sandbox"
        self._record = find_trial(trial_key)
        self._through_relay = self._inside and self._record.access is None
        access = _access(self._record, wiring)
        self._agent: BaseAgent = _prebaked(agent_class(agent), wiring)(
            logs_dir=logs_dir,
            model_name=model_name,
            extra_env={**(extra_env or {}), **wiring.environment(access)},
            **{**kwargs, **wiring.arguments(arguments, model_name or "", access)},
        )
        if wiring.made is not None:
            wiring.made(self._agent)
        # A class variable of Harbor's, which it reads from the instance.
        vars(self)["capabilities"] = self._agent.capabilities

    @staticmethod
    def name() -> str:
        """The wrapper's name; Harbor's results carry the wrapped agent's."""
        return "osmosis-native"

    def version(self) -> str | None:
        """The wrapped agent's version."""
        return self._agent.version()

    def to_agent_info(self) -> AgentInfo:
        """The wrapped agent's name, version and model."""
        return self._agent.to_agent_info()

    @property
    def extra_env(self) -> dict[str, str]:
        """Variables for the sandbox; the endpoint of an agent on the host is not among them."""
        return self._agent.extra_env if self._inside else {}

    async def set_web_tools_disabled(self, disabled: bool, environment: BaseEnvironment) -> None:
        """Pass on what the task's network policy asks, to an agent that has such tools."""
        if self._agent.capabilities.native_web_tools:
            await self._agent.set_web_tools_disabled(disabled, environment)

    async def setup(self, environment: BaseEnvironment) -> None:
        """Set the wrapped agent up; see ``_Prebaked`` for its installation."""
        if self._inside:
            await make_ready(environment, self._record, probe=True)
        self._agent.session_id, self._agent.context_id = self.session_id, self.context_id
        await self._agent.setup(environment)

    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """Run the wrapped agent, with its way to the model open."""
        await self._routed(self._agent.run, instruction, environment, context)

    async def resume(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """See ``run``."""
        await self._routed(self._agent.resume, instruction, environment, context)

    async def load(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """See ``run``."""
        await self._routed(self._agent.load, instruction, environment, context)

    def populate_context_post_run(self, context: AgentContext) -> None:
        """Let the wrapped agent read its own logs."""
        self._agent.populate_context_post_run(context)

    async def _routed(
        self, run: _Run, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        async with model_route(environment) if self._through_relay else nullcontext():
            await run(instruction, environment, context)


class _Prebaked:
    """Before an installed agent's class: what the task's image holds is not installed again."""

    wiring: Wiring

    async def install(self, environment: BaseEnvironment) -> None:
        if self.wiring.probe is not None:
            found = await environment.exec(self.wiring.probe)
            if found.return_code == 0:
                return
        try:
            await super().install(environment)  # type: ignore[misc]
        except RuntimeError as exc:
            raise RuntimeError(
                f"The agent is not in the image and cannot be installed now; {self.wiring.remedy} "
                f"({exc})"
            ) from exc


def _prebaked(kind: Any, wiring: Wiring) -> Any:
    if not hasattr(kind, "install"):
        return kind
    return type(kind.__name__, (_Prebaked, kind), {"wiring": wiring, "__module__": kind.__module__})


def _access(record: TrialRecord, wiring: Wiring) -> Access:
    """Where the agent finds its model: by the relay, over the network, or from this process."""
    if wiring.runs == "sandbox":
        given = record.access
        return SANDBOX_ACCESS if given is None else Access(given.url, given.api_key or "")
    if record.endpoint is None:
        raise RuntimeError("a native agent needs the rollout's endpoint")
    return Access(record.endpoint.url, record.endpoint.token)
