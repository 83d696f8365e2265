"""A runtime as one compressed archive: uploaded to sandboxes, or added to images as a layer."""

import gzip
import io
import shlex
import tarfile
from pathlib import Path

from harbor_backend.program.bundle.store import Entry, Store, user_cache

KEY_FILE = "runtime.key"
"""In a sandbox's runtime directory: which runtime it is."""

USER_VARIABLE = "OSMOSIS_IMAGE_USER"
"""In an image that starts as root and holds the runtime: whom its commands are for."""

ARCHIVE = "runtime.tar.gz"
_LEVEL = 6


def runtime_archive(runtime: Path, cache_dir: Path | None = None) -> Entry:
    """The archive of a published runtime, in a held directory as ``runtime.tar.gz``.

    Its members lie at the top, belong to root, and one more holds the runtime's
    key. Made once per content; blocks for seconds then, so call it in a thread.
    """
    store = Store(user_cache("archives", cache_dir))
    return store.acquire(runtime.name, lambda folder: _pack(runtime, folder / ARCHIVE))


def unpack_command(archive: str, target: str) -> str:
    """The shell command that unpacks an archive in a directory, which is made, and removes it."""
    folder = shlex.quote(target)
    return (
        f"mkdir -p {folder} && tar -xzf {archive} -C {folder}; code=$?; rm -f {archive}; exit $code"
    )


def _pack(runtime: Path, target: Path) -> None:
    with (
        gzip.GzipFile(target, "wb", compresslevel=_LEVEL, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        for entry in sorted(runtime.rglob("*")):
            archive.add(entry, entry.relative_to(runtime), recursive=False, filter=_roots)
        key = tarfile.TarInfo(KEY_FILE)
        data = runtime.name.encode()
        key.size, key.mode = len(data), 0o444
        archive.addfile(key, io.BytesIO(data))


def _roots(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
