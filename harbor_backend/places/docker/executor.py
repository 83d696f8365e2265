"""What runs commands and moves files in a container: a supervisor inside, or the engine itself."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harbor_backend.places.sandbox import PhaseEnd

OUTPUT_LIMIT = 16 * 1024 * 1024

type OnOutput = Callable[[str, str], Awaitable[None]]


@dataclass
class Command:
    """A command for the sandbox; ``timeout_sec`` ends its whole process tree.

    With ``spares_processes``, its deadline or cancellation ends itself alone, and
    what it started lives on.
    ``runner`` holds the arguments of the SDK's runner where ``argv`` starts it:
    a supervisor may then fork one that is loaded already.
    """

    argv: Sequence[str]
    user: str | int | None = None
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    timeout_sec: float | None = None
    stdin: bytes | None = None
    output_limit: int = OUTPUT_LIMIT
    result_limit: int = 0
    spares_processes: bool = False
    runner: Sequence[str] | None = None
    on_output: OnOutput | None = field(default=None, repr=False)


class Executor(ABC):
    """The way into one container."""

    is_supervisor: bool
    """Whether input and result of a phase cross as no file, and phases are forked."""

    @abstractmethod
    async def run(self, command: Command) -> PhaseEnd:
        """Run one command to its end; cancelling the call kills its process tree.

        Raises:
            SandboxLostError: the sandbox ended first.
            ValueError: the request cannot be served, for example a user that the
                image does not have.
        """

    @abstractmethod
    async def mkdir(self, paths: Sequence[str], mode: int = 0o777) -> None:
        """Make directories, with their parents, as root."""

    @abstractmethod
    async def put(self, source: Path, path: str) -> None:
        """Copy a local file to ``path``, or the content of a local directory below it."""

    @abstractmethod
    async def get(self, path: str, target: Path, *, max_bytes: int, max_entries: int) -> int:
        """Copy a file or tree to ``target``; returns how many entries were left out.

        Raises:
            FileNotFoundError: the path does not exist.
            ValueError: it is larger than the budget.
        """

    @abstractmethod
    async def keep(self) -> None:
        """Let the container outlive this process."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the container."""
