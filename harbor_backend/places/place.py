"""A place where sandboxes live, as a backend and its trials know it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harbor.models.task.config import TaskConfig
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.core.names import trial_name
from harbor_backend.core.spec import StagedTask, TrialSpec
from harbor_backend.core.trial import Trial
from osmosis_ai.rollout.context import ModelEndpoint

if TYPE_CHECKING:
    from harbor_backend.program.program import Program


@dataclass(frozen=True)
class Environments:
    """Harbor's configurations of a trial's sandboxes: the agent's, and an SDK grader's own."""

    agent: EnvironmentConfig
    grader: EnvironmentConfig


@dataclass(frozen=True)
class GatewayAddress:
    """Where a backend's gateway listens, and the URL at which sandboxes of the place find it."""

    host: str = "127.0.0.1"
    port: int = 0
    advertise_url: str | None = None


@dataclass(frozen=True)
class TaskFiles:
    """A task as it lies in its folder: what images are made of before any rollout."""

    name: str
    config: TaskConfig
    path: Path

    @property
    def environment_dir(self) -> Path:
        """What its image is made of."""
        return self.path / "environment"


@dataclass(frozen=True)
class BackendNeeds:
    """What is known of all rollouts of a backend before the first: program, tasks, judge."""

    program: "Program"
    tasks: Iterable[TaskFiles]
    has_judge: bool


class Place(ABC):
    """Where the sandboxes of a backend live.

    Made once per backend, started before its first rollout and closed with it.
    What depends on one trial gets its ``TrialSpec``, or the ``Trial`` once it
    lives; nobody asks a place which it is.
    """

    name: str
    """What reports call its environment."""

    kind = "docker"
    """What health reports call the way to the model."""

    gateway: GatewayAddress = GatewayAddress()
    needs_public_url = False
    """Whether sandboxes reach the model over a network, by an address that the caller gives."""

    reads_services_in_place = False
    """Whether Harbor reads a task's compose files where it is told that the task lies: only there
    do their relative paths mean what their author meant."""

    async def start(self) -> None:
        """Connect what has to be, and begin to remove what dead processes left. Idempotent."""

    def check_backend(self, backend: "BackendNeeds") -> None:
        """Pass when a backend's rollouts can run here at all.

        Raises:
            ValueError: none can; the text says what to set.
        """

    async def check_reachable(self, tasks: Sequence[TaskFiles]) -> None:
        """Pass when sandboxes of these tasks can be started now.

        Raises:
            HarborBackendError: they cannot; the text says what is missing.
        """

    async def aclose(self) -> None:
        """Let go of everything. Idempotent."""

    def of(self, task: StagedTask | TaskFiles) -> "Place":
        """The place for one task: itself, unless it is made of several."""
        return self

    def name_trial(self, rollout_id: str) -> str:
        """A fresh name for a trial."""
        return trial_name(rollout_id)

    def check(self, spec: TrialSpec) -> None:
        """Pass when its sandboxes can do what a trial asks for.

        Raises:
            ValueError: they cannot; the text names the task, what it asks for, and the remedy.
        """

    def remote_model(self, url: str, token: str) -> ModelEndpoint | None:
        """Where sandboxes find an endpoint of the backend's gateway; ``None``: by a socket."""
        return None

    @abstractmethod
    async def environments(self, trial: Trial, stack: AsyncExitStack) -> Environments:
        """Prepare the sandboxes of a trial and say how Harbor makes them.

        What is held for the trial is let go by ``stack``, which closes after it.

        Raises:
            HarborBackendError, OSError, ValueError: they cannot be.
        """

    def around(self, trial: Trial) -> AbstractAsyncContextManager[None]:
        """The block in which Harbor runs the trial; its end sees to what Harbor leaves."""
        return nullcontext()

    async def prepare(self) -> None:
        """Make what all trials share.

        Raises:
            HarborBackendError: it cannot be made.
        """

    async def prepare_task(self, task: TaskFiles, runtime: Path | None) -> None:
        """Make a task's image ready; ``runtime`` is what will have to be in its sandboxes.

        Raises:
            ValueError, SandboxBuildFailedError, HarborBackendError: it cannot be made.
        """

    def report(self) -> dict[str, Any]:
        """What a health report adds about this place."""
        return {}


def with_kwargs(config: EnvironmentConfig, **kwargs: Any) -> EnvironmentConfig:
    """A copy of an environment's configuration with these arguments too."""
    return config.model_copy(update={"kwargs": {**config.kwargs, **kwargs}})
