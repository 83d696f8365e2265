"""Resolving users from the image's own files, as a container engine does."""

from typing import NamedTuple


class User(NamedTuple):
    """Whom a command runs as."""

    uid: int
    gid: int
    groups: list[int]
    home: str


def find_user(spec: str | int | None) -> User | None:
    """Resolve ``name``, ``uid`` or either with ``:group``; ``None`` for no user.

    Reads ``/etc/passwd`` and ``/etc/group`` itself: the runtime's libc cannot
    load the image's name services.

    Raises:
        ValueError: a name stands in neither file.
    """
    if spec is None or spec == "":
        return None
    name, _, group = str(spec).partition(":")
    uid, gid, home, login = _account(name or "0")
    if group:  # then, as under an engine, it is the only one
        gid, login = _group(group), ""
    member_of = [
        int(fields[2])
        for fields in _records("/etc/group", 4)
        if login and login in fields[3].split(",")
    ]
    return User(uid, gid, [gid, *member_of], home)


def _account(name: str) -> tuple[int, int, str, str]:
    for fields in _records("/etc/passwd", 6):
        if name in (fields[0], fields[2]):
            return int(fields[2]), int(fields[3]), fields[5] or "/", fields[0]
    if not name.isdigit():
        raise ValueError(f"unable to find user {name}: not in the image's passwd file")
    return int(name), 0, "/", ""


def _group(name: str) -> int:
    for fields in _records("/etc/group", 4):
        if name in (fields[0], fields[2]):
            return int(fields[2])
    if not name.isdigit():
        raise ValueError(f"unable to find group {name}: not in the image's group file")
    return int(name)


def _records(path: str, width: int) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    return [fields for line in lines if len(fields := line.split(":")) >= width]
