"""What a trial asks of a sandbox beyond Harbor's ``BaseEnvironment``."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum

from harbor.environments.base import BaseEnvironment

from harbor_backend.core.phases import PhaseCall
from harbor_backend.core.spec import Model
from harbor_backend.core.trial import Lendable, Trial


class Role(StrEnum):
    """Whose sandbox it is: the agent's, an SDK grader's, or that of a task's separate verifier."""

    AGENT = "agent"
    GRADER = "grader"
    VERIFIER = "verifier"


def role_of(given: str | None, trial: Trial | None) -> Role:
    """The role of an environment that Harbor makes, which tells it nothing of that.

    ``given`` is what its configuration says. One of the agent's configuration is
    the agent's if it is the trial's first, else a separate verifier's.
    """
    if given is not None:
        return Role(given)
    return Role.AGENT if trial is None or trial.claim_agent_role() else Role.VERIFIER


@dataclass(frozen=True)
class PhaseEnd:
    """How a phase's process ended, what it printed, and the result that it wrote.

    ``result`` is empty without one; ``result_dropped`` counts the bytes of one
    that was too large, ``dropped`` those of output over its limit. ``result_forged``
    says that there was one that the runner did not write.
    """

    code: int
    stdout: bytes
    stderr: bytes
    result: bytes = b""
    timed_out: bool = False
    dropped: int = 0
    result_dropped: int = 0
    result_forged: bool = False


@dataclass(frozen=True)
class ModelRoute:
    """How code in a sandbox reaches a model: a socket there, or a URL with a key; or not at all."""

    socket: str | None = None
    url: str = ""
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Sights:
    """What a sandbox looks like before a task's tests run where the agent worked.

    ``processes`` began after the agent did and still run; ``changed`` are the paths that differ
    from the image. ``None`` is not known, and ``problem`` says why.
    """

    processes: list[str] | None
    changed: list[str] | None
    problem: str = ""


class Sandbox(ABC):
    """A sandbox of a trial.

    Our environments implement it beside Harbor's interface; for one that knows
    nothing of us, ``SandboxAdapter`` does. Its methods raise
    ``HarborBackendError`` when the sandbox fails, not what runs in it.
    """

    role: Role

    ends_before_grading = True
    """Whether it may go as soon as the sample is collected: a grader in its own needs nothing."""

    @abstractmethod
    async def make_ready(self) -> None:
        """Have the runtime there, and see that the agent's model can be reached.

        Raises:
            ValueError: this image cannot be prepared; the text says why.
        """

    @abstractmethod
    async def open_directory(self, path: str) -> None:
        """Make a directory whose content every user of the sandbox may read and write."""

    @abstractmethod
    async def serve_model(self, model: Model, socket_path: str) -> ModelRoute:
        """Open the way to a model until the sandbox ends; by a socket, it is at ``socket_path``."""

    @abstractmethod
    async def run_phase(self, call: PhaseCall) -> PhaseEnd:
        """Run a phase's process."""

    async def before_tests(self, agent_sec: float, agent_user: str | int | None) -> Sights | None:
        """Look around before a task's tests, ``agent_sec`` seconds after the agent began.

        Where the agent was not root (``agent_user``, or the image's), and the tests are,
        only root may write to the verifier's directory from then on. ``None`` where nobody looks.
        """
        return None


class SandboxMaker(ABC):
    """Makes a ``Sandbox`` of an environment that knows nothing of us."""

    @abstractmethod
    def adapt(self, environment: BaseEnvironment, trial: Trial, role: Role) -> Sandbox:
        """The environment as a sandbox with this role."""


SANDBOX_MAKER = Lendable[SandboxMaker]("sandbox maker")


def sandbox_of(environment: BaseEnvironment, trial: Trial, role: Role) -> Sandbox:
    """What a trial asks of one of its environments, whoever wrote that."""
    if isinstance(environment, Sandbox):
        return environment
    return trial.lent(SANDBOX_MAKER).adapt(environment, trial, role)
