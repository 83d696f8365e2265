"""What a command says when it cannot go on, and the exit code that goes with it."""

from collections.abc import Iterator
from contextlib import contextmanager

FAILED = 1
USAGE = 2
INTERRUPTED = 130
TERMINATED = 143


class CliError(Exception):
    """Ends a command with one line on standard error: what, where, and the remedy.

    ``code`` is 2 for a wrong command line, 1 where the machine is at fault.
    """

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def harbor_extra(feature: str) -> Iterator[None]:
    """Say which extra to install when the block's imports miss a package of it.

    Raises:
        CliError: a package is missing.
    """
    from osmosis_ai.common.extras import needs_extra

    packages = ("harbor", "docker", "aiohttp", "platformdirs", "tomlkit", "yaml", "uv")
    try:
        with needs_extra("harbor", feature, *packages):
            yield
    except ModuleNotFoundError as exc:
        raise CliError(str(exc), FAILED) from exc
