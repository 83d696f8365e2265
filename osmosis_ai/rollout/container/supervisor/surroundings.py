"""What the container engine gives every process of a container, and so every command."""

import os
from collections.abc import Mapping
from typing import NamedTuple


class Surroundings(NamedTuple):
    """Environment and directory as the engine sets them.

    ``names_home``: the image or the container sets ``HOME``, so it is the same for
    every user; else it is that of each user.
    """

    environment: Mapping[str, str]
    cwd: str
    names_home: bool


def surroundings(*, names_home: bool) -> Surroundings:
    """Those of this process, as it was started.

    ``os.environ`` is not what it was: where no locale is set, an interpreter adds one.
    """
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    pairs = (entry.partition(b"=") for entry in entries if b"=" in entry)
    environment = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return Surroundings(environment, os.getcwd(), names_home)
