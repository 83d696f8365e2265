"""Changing the ``task.toml`` of a staged task."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomlkit


def set_image(task: Path, reference: str) -> None:
    """Let a staged task run this image, which was built of its Dockerfile."""
    with _environment_table(task) as environment:
        environment["docker_image"] = reference


def deny_network_by_default(task: Path) -> None:
    """Give a staged task no network, unless it says what it wants."""
    with _environment_table(task) as environment:
        if "network_mode" not in environment and "allow_internet" not in environment:
            environment["network_mode"] = "no-network"


@contextmanager
def _environment_table(task: Path) -> Iterator[Any]:
    """The table ``[environment]``; what is changed in it is written."""
    path = task / "task.toml"
    text = path.read_text()
    document = tomlkit.parse(text)
    yield document.setdefault("environment", tomlkit.table())
    if (changed := tomlkit.dumps(document)) != text:
        path.write_text(changed)
