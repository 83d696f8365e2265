"""Starting the supervisor as a container's command, and saying why it did not come up."""

from pathlib import Path

from harbor_backend.environments.engine import Engine
from osmosis_ai.rollout.container.files import RUNTIME_DIR, RUNTIME_PYTHON

_BOOT = "import sys; sys.path.insert(0, sys.argv.pop()); from supervisor.main import main; main()"


def supervisor_command(runtime_dir: Path | None, socket: str) -> list[str]:
    """The command that connects to ``socket``, a path of the container, and serves it."""
    if runtime_dir is None:
        raise RuntimeError("a supervised sandbox needs a runtime")
    package = next(runtime_dir.glob("python/lib/python3*/site-packages"))
    folder = f"{RUNTIME_DIR}/{package.relative_to(runtime_dir)}/osmosis_ai/rollout/container"
    return [RUNTIME_PYTHON, "-I", "-S", "-c", _BOOT, socket, folder]


async def why_not_started(engine: Engine, container: str | None) -> str:
    """What became of a container whose supervisor was waited for."""
    if container is None:
        return "The sandbox has no container"
    state = (await engine.inspect(container))["State"]
    return (
        f"The sandbox's supervisor did not come up: container {state['Status']}, exit code "
        f"{state['ExitCode']}, out of memory: {state['OOMKilled']}. "
        f"It printed: {(await engine.logs(container)).strip() or 'nothing'}"
    )
