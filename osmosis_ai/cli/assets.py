"""Where the files that ship with the project are, in a checkout and in a wheel."""

from importlib.resources import files
from pathlib import Path

PACKAGE = Path(str(files("osmosis_ai")))


def tasks_dir() -> Path:
    """Return the folder of tasks that ship with the project.

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    for path in (PACKAGE / "_tasks", PACKAGE.parent / "tasks"):
        if (path / "multiply" / "task.toml").is_file():
            return path
    raise FileNotFoundError(f"The tasks that ship with osmosis-ai are missing beside {PACKAGE}")


def template_dir(name: str) -> Path:
    """Return the directory of a rollout template that ships with the project."""
    return PACKAGE / "templates" / "rollouts" / name
