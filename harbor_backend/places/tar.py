"""Trees as archives, which is how an engine takes and gives them."""

import os
import tarfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Any

from harbor_backend.places.safe_tree import TreeWriter, local_entries
from osmosis_ai.rollout.container.supervisor.transfer import MAX_DEPTH

BLOCK = 512
_CHUNK = 256 * 1024


async def chunks_of(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield a file's bytes from its beginning."""
    file.seek(0)
    while chunk := file.read(_CHUNK):
        yield chunk


def pack(source: Path, top: str, archive: IO[bytes]) -> None:
    """Write a local file, as ``top``, or the content of a local directory."""
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for entry in local_entries(source):
            name = entry.header["name"] or top
            if not name:
                continue
            member = tarfile.TarInfo(name)
            member.mode, member.mtime = entry.header["mode"], time.time()
            if entry.header["kind"] == "dir":
                member.type = tarfile.DIRTYPE
            elif entry.header["kind"] == "link":
                member.type, member.linkname = tarfile.SYMTYPE, entry.header["target"]
            elif entry.source is not None:
                member.size = entry.source.stat().st_size
                with entry.source.open("rb") as file:
                    tar.addfile(member, file)
                continue
            tar.addfile(member)


def unpack(archive: IO[bytes], target: Path, max_bytes: int, max_entries: int) -> int:
    """Write an archive's members at or below ``target``; returns how many were left out.

    Raises:
        ValueError: it holds more than the budget.
    """
    skipped, size = 0, 0
    with TreeWriter(target) as writer, tarfile.open(fileobj=archive) as tar:
        for count, member in enumerate(tar):
            if count >= max_entries:
                raise ValueError(f"more than {max_entries} entries")
            if (size := size + member.size) > max_bytes:
                raise ValueError(f"more than {max_bytes} bytes")
            skipped += not _write(writer, tar, member)
    return skipped + writer.refused_links


def _write(writer: TreeWriter, tar: tarfile.TarFile, member: tarfile.TarInfo) -> bool:
    """Write one member, unless it is a special file; returns whether it was written."""
    # The archive's own top is the requested path itself.
    name = os.path.normpath(member.name).partition("/")[2]
    if name.count("/") >= MAX_DEPTH:
        return False
    header: dict[str, Any] = {"name": name, "mode": member.mode}
    if member.isdir():
        writer.entry({**header, "kind": "dir"})
    elif member.issym():
        writer.entry({**header, "kind": "link", "target": member.linkname})
    elif (member.isreg() or member.islnk()) and (file := tar.extractfile(member)) is not None:
        writer.entry({**header, "kind": "file"})
        while data := file.read(_CHUNK):
            writer.data(data)
    else:
        return False
    return True
