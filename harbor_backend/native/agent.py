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
from harbor.utils.trajectory_utils import load_model_usage_from_trajectory

from harbor_backend.core.policy import as_harbor_grades
from harbor_backend.core.spec import Model
from harbor_backend.core.trial import Trial, find_trial
from harbor_backend.errors import HarborBackendError
from harbor_backend.native.relay import relay
from harbor_backend.places.agent_logs import set_aside_unreadable
from harbor_backend.places.sandbox import Role, sandbox_of
from harbor_backend.program.native_agents import (
    ENDPOINTLESS,
    SANDBOX_ACCESS,
    Access,
    NativeAgentSetup,
    agent_class,
    setup_for,
)
from osmosis_ai.rollout.container.files import GATEWAY_SOCKET

_IMPORT_PATH = f"{__name__}:NativeAgent"

type _Run = Callable[[str, BaseEnvironment, AgentContext], Coroutine[Any, Any, None]]


def native_config(trial: Trial, agent: str) -> AgentConfig:
    """Harbor's configuration of a native agent; it is written to disk without the endpoint.

    Raises:
        ValueError: the agent needs a model, and the rollout has no chat URL.
    """
    spec = trial.spec
    limits: dict[str, Any] = {
        "override_timeout_sec": spec.agent_timeout_sec,
        "override_setup_timeout_sec": spec.options.setup_timeout_sec,
    }
    if agent in ENDPOINTLESS:
        return AgentConfig(name=agent, kwargs=dict(spec.options.native_kwargs), **limits)
    if spec.policy is None:
        raise ValueError(
            f"agent={agent!r} needs a model, and rollout {spec.request.id!r} has no "
            "chat_completions_url: send one with the rollout (a public provider is never asked "
            "instead)"
        )
    setup = setup_for(agent)
    model_name = setup.model_name(spec.model_name)
    kwargs = {
        "trial_key": trial.key,
        "agent": agent,
        "arguments": setup.arguments(spec.options.native_kwargs, model_name, SANDBOX_ACCESS),
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
        setup = setup_for(agent)
        self._trial = find_trial(trial_key)
        self._model = _model(self._trial)
        self._inside = setup.runs == "sandbox"
        self._through_relay = self._inside and self._model.remote is None
        access = _access(self._model, setup)
        self._agent: BaseAgent = _prebaked(agent_class(agent), setup)(
            logs_dir=logs_dir,
            model_name=model_name,
            extra_env={**(extra_env or {}), **setup.environment(access)},
            **{**kwargs, **setup.arguments(arguments, model_name or "", access)},
        )
        if setup.made is not None:
            setup.made(self._agent)
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
        self._trial.sandbox_wait.over()
        if self._inside:
            sandbox = sandbox_of(environment, self._trial, Role.AGENT)
            await sandbox.make_ready()
            await sandbox.serve_model(self._model, GATEWAY_SOCKET)
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
        self._set_aside()
        self._agent.populate_context_post_run(context)

    async def _routed(
        self, run: _Run, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        async with relay(environment) if self._through_relay else nullcontext():
            try:
                await run(instruction, environment, context)
            except HarborBackendError:
                raise
            except Exception as exc:  # of the agent's own kind
                raise as_harbor_grades(exc) from exc
        if not context.is_empty() and context.model_usage is None:
            # Now, of what it wrote here: later, the sandbox's logs lie in its place.
            self._set_aside()
            written = self.logs_dir / "trajectory.json"
            context.model_usage = load_model_usage_from_trajectory(written) or {}

    def _set_aside(self) -> None:
        for note in set_aside_unreadable(self.logs_dir):
            self._trial.results.note(note)


class _Prebaked:
    """Before an installed agent's class: what the task's image holds is not installed again."""

    agent_setup: NativeAgentSetup

    async def install(self, environment: BaseEnvironment) -> None:
        if self.agent_setup.probe is not None:
            found = await environment.exec(self.agent_setup.probe)
            if found.return_code == 0:
                return
        try:
            await super().install(environment)  # type: ignore[misc]
        except RuntimeError as exc:
            remedy = self.agent_setup.remedy
            raise RuntimeError(
                f"The agent is not in the image and cannot be installed now; {remedy} ({exc})"
            ) from exc


def _prebaked(kind: Any, setup: NativeAgentSetup) -> Any:
    if not hasattr(kind, "install"):
        return kind
    own = {"agent_setup": setup, "__module__": kind.__module__}
    return type(kind.__name__, (_Prebaked, kind), own)


def _model(trial: Trial) -> Model:
    if trial.spec.policy is None:
        raise RuntimeError("a native agent needs the rollout's model")
    return trial.spec.policy


def _access(model: Model, setup: NativeAgentSetup) -> Access:
    """Where the agent finds its model: by the relay, over the network, or from this process."""
    if setup.runs == "sandbox":
        remote = model.remote
        return SANDBOX_ACCESS if remote is None else Access(remote.url, remote.api_key or "")
    return Access(model.endpoint.local_url, model.endpoint.token)
