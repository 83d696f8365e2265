"""The base tree: an interpreter and every library it needs, the same for all bundles."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from harbor_backend.program.runtime import elf
from harbor_backend.program.runtime.interpreter import NOT_NEEDED, Interpreter
from harbor_backend.program.runtime.paths import CA_BUNDLE, LIBRARIES, MOUNT, PYTHON, RPATH, under
from harbor_backend.program.runtime.tree import compile_tree, make_readable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harbor_backend.program.bundle.store import Entry, Store

logger = logging.getLogger(__name__)

RECIPE = 1

# Loaded by name at run time, so that no ldd lists them: C++ and threads that are cancelled,
# and name resolution of a glibc older than 2.34.
EXTRA_LIBRARIES = (
    *("libgcc_s.so.1", "libstdc++.so.6", "libresolv.so.2"),
    *("libnss_dns.so.2", "libnss_files.so.2"),
)
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def base_tree(store: Store, interpreter: Interpreter) -> Entry:
    """The tree of an interpreter, built when there is none yet, and held."""
    ca_bundle = find_ca_bundle()
    return store.acquire(
        base_key(store, interpreter, ca_bundle),
        lambda target: build_base(interpreter, ca_bundle, target),
    )


def base_key(store: Store, interpreter: Interpreter, ca_bundle: Path) -> str:
    """The key of an interpreter's tree; the files behind it are hashed once per change."""
    store.root.mkdir(parents=True, exist_ok=True)
    memo = store.root / f"{interpreter.stamp()}.identity.json"
    try:
        identity = json.loads(memo.read_text())
    except (OSError, ValueError):
        identity = interpreter.identity()
        partial = memo.with_name(f".{memo.name}.{os.getpid()}")
        partial.write_text(json.dumps(identity))
        partial.replace(memo)
    head = json.dumps([RECIPE, identity], sort_keys=True).encode()
    return hashlib.sha256(head + ca_bundle.read_bytes()).hexdigest()[:32]


def find_ca_bundle() -> Path:
    """The file with the certificate authorities that this machine trusts.

    Raises RuntimeError when there is none.
    """
    default = ssl.get_default_verify_paths()
    candidates = [os.environ.get("SSL_CERT_FILE"), default.cafile, *CA_BUNDLES]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    try:
        import certifi
    except ImportError:
        raise RuntimeError(
            "no CA bundle found on this machine: install ca-certificates, or set SSL_CERT_FILE"
        ) from None
    return Path(certifi.where())


def build_base(interpreter: Interpreter, ca_bundle: Path, target: Path) -> None:
    """Fill `target` with `python/`, `lib/` and `ca.pem` so that it runs at `/opt/osmosis`."""
    _copy_standard_library(interpreter, target)
    modules = _copy_extension_modules(interpreter, target)
    program = under(target, PYTHON)
    program.parent.mkdir(parents=True)
    shutil.copyfile(interpreter.executable, program)
    program.chmod(0o755)
    for alias in ("python", f"python{interpreter.short_version}"):
        (program.parent / alias).symlink_to(program.name)
    needed = _libraries(interpreter)
    libraries = copy_libraries(needed, target)
    loader = Path(elf.interpreter_of(program)).name
    if not (under(target, LIBRARIES) / loader).exists():
        raise RuntimeError(f"{interpreter.executable}: its loader {loader} was not found by ldd")
    elf.set_search_path([program], RPATH, interpreter=str(LIBRARIES / loader))
    elf.set_search_path([*modules, *libraries], RPATH)
    _make_site_packages_visible(interpreter, target)
    shutil.copyfile(ca_bundle, under(target, CA_BUNDLE))
    compile_tree(target / interpreter.library, MOUNT / interpreter.library, interpreter.executable)
    make_readable(target)


def _copy_standard_library(interpreter: Interpreter, target: Path) -> None:
    def ignore(folder: str, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if name in NOT_NEEDED or name == "lib-dynload" or name.startswith("config-")
        }

    shutil.copytree(interpreter.stdlib, target / interpreter.library, ignore=ignore)


def _copy_extension_modules(interpreter: Interpreter, target: Path) -> list[Path]:
    folder = target / interpreter.library / "lib-dynload"
    folder.mkdir()
    copies = []
    for module, libraries in elf.libraries_of(interpreter.extension_modules()).items():
        if libraries is None:
            logger.info("%s needs a library this machine lacks; left out", module.name)
            continue
        copies.append(Path(shutil.copyfile(module, folder / module.name)))
        copies[-1].chmod(0o755)
    return copies


def _libraries(interpreter: Interpreter) -> dict[str, Path]:
    needed: dict[str, Path] = {}
    listed = elf.libraries_of([interpreter.executable, *interpreter.extension_modules()])
    for libraries in listed.values():
        needed.update(libraries or {})
    for name in EXTRA_LIBRARIES:
        found = _find_library(name, {path.parent for path in needed.values()})
        if name not in needed and found is not None:
            needed[name] = found
    return needed


def _find_library(name: str, folders: Iterable[Path]) -> Path | None:
    return next((f / name for f in sorted(folders) if (f / name).is_file()), None)


def copy_libraries(needed: dict[str, Path], target: Path) -> list[Path]:
    """Copy libraries under the names they are asked for, and return those to be given a path.

    One that is there already stays. The loader and libc are copied as they are.
    """
    folder = under(target, LIBRARIES)
    folder.mkdir(exist_ok=True)
    copies = []
    for name, path in needed.items():
        copy = folder / name
        if copy.exists():
            continue
        shutil.copyfile(path, copy)
        copy.chmod(0o755)
        if not elf.is_loader(name) and not elf.is_libc(name):
            copies.append(copy)
    return copies


def _make_site_packages_visible(interpreter: Interpreter, target: Path) -> None:
    """Debian's interpreter looks for packages in `dist-packages` only: tell it of ours."""
    library = target / interpreter.library
    if "dist-packages" not in (library / "site.py").read_text(encoding="utf-8"):
        return
    hook = library / "sitecustomize.py"
    hook.unlink(missing_ok=True)
    place = MOUNT / interpreter.site_packages
    hook.write_text(f"import site\n\nsite.addsitedir({str(place)!r})\n")
