"""A runtime starts in any image, sealed as a sandbox is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_backend.program.runtime import MOUNT, Runtime
from harbor_backend.program.runtime.base import build_base, find_ca_bundle
from harbor_backend.program.runtime.interpreter import Interpreter

pytestmark = pytest.mark.docker

type Run = Callable[..., str]

CHECK = """
import asyncio, bz2, ctypes, curses, decimal, json, lzma, sqlite3, ssl, subprocess, sys, zlib
import importlib.metadata, os, pydantic

async def child():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import pydantic, sys; print(sys.executable)",
        stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode().strip()

class Model(pydantic.BaseModel):
    number: int

maps = [line.split() for line in open("/proc/self/maps")]
code = {fields[-1] for fields in maps if "x" in fields[1] and "/" in fields[-1]}
print(json.dumps({
    "uid": os.getuid(),
    "executable": sys.executable,
    "child": asyncio.run(child()),
    "sqlite": sqlite3.connect(":memory:").execute("select 6 * 7").fetchone()[0],
    "authorities": ssl.create_default_context(cafile="/opt/osmosis/ca.pem").cert_store_stats(),
    "c": ctypes.CDLL(None).abs(-5),
    "model": Model.model_validate_json('{"number": 3}').number,
    "sdk": importlib.metadata.version("osmosis-ai"),
    "foreign": sorted(path for path in code if not path.startswith("/opt/osmosis/")),
}))
"""


def test_it_runs_with_nothing_but_its_own_files(image: str, run: Run, runtime: Runtime) -> None:
    found = json.loads(run(image, runtime.path, CHECK))
    assert found.pop("authorities")["x509_ca"] > 0
    assert found.pop("sdk")
    # Only code counts: an image's locale data is read, as by any program.
    assert found == {
        "uid": 1000,
        "executable": "/opt/osmosis/python/bin/python3",
        "child": "/opt/osmosis/python/bin/python3",
        "sqlite": 42,
        "c": 5,
        "model": 3,
        "foreign": [],
    }


def test_an_images_own_library_path_does_not_reach_it(
    image: str, run: Run, runtime: Runtime
) -> None:
    environment = {"LD_LIBRARY_PATH": "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib"}
    found = json.loads(run(image, runtime.path, CHECK, environment=environment))
    assert found["foreign"] == []


def test_it_imports_the_bundled_project(image: str, run: Run, runtime: Runtime) -> None:
    shown = run(
        image,
        runtime.path,
        "import main, osmosis_bundle_main as b\n"
        "print(main.__file__, b.load_agent()[0] is main.DoublingWorkflow, main.SYSTEM_PROMPT)\n"
        "import osmosis_ai.rollout, sys\n"
        "print({'harbor', 'fastapi', 'typer', 'rich'} & set(sys.modules))",
    )
    assert shown.splitlines() == [
        f"{MOUNT / Interpreter.running().site_packages}/main.py True You double numbers.",
        "",
        "set()",
    ]


def test_all_bytecode_is_used_as_it_is(busybox: str, run: Run, runtime: Runtime) -> None:
    shown = run(
        busybox,
        runtime.path,
        "import sys, pydantic, asyncio, main, osmosis_ai.rollout\n"
        "cached = [m.__spec__.cached for m in list(sys.modules.values())\n"
        "          if getattr(m, '__spec__', None) and (m.__spec__.origin or '').endswith('.py')]\n"
        "heads = [open(c, 'rb').read(8) for c in cached]\n"
        "print(len(heads) > 100, {int.from_bytes(h[4:], 'little') for h in heads})\n"
        "print(main.DoublingGrader.grade.__code__.co_filename)",
    )
    # Flags 1: hash-based, and never checked against the source.
    assert shown.splitlines()[0] == "True {1}"
    assert shown.splitlines()[1].startswith("/opt/osmosis/python/lib/")


def others() -> list[Path]:
    names = ["/usr/bin/python3", *(f"python3.{minor}" for minor in range(11, 15))]
    found = {}
    for name in names:
        path = shutil.which(name)
        try:
            interpreter = Interpreter.at(Path(path)) if path else None
        except RuntimeError:
            continue
        if interpreter is not None:
            found[interpreter.executable] = Path(str(path))
    return list(found.values())


@pytest.mark.parametrize("python", others(), ids=str)
def test_every_interpreter_of_this_machine_can_be_carried(
    python: Path, busybox: str, run: Run, tmp_path: Path
) -> None:
    interpreter = Interpreter.at(python)
    build_base(interpreter, find_ca_bundle(), tmp_path)
    (tmp_path / interpreter.site_packages).mkdir(mode=0o755)
    (tmp_path / interpreter.site_packages / "installed.py").write_text("")
    tmp_path.chmod(0o755)
    shown = run(
        busybox,
        tmp_path,
        "import installed, platform, sqlite3, ssl, sys\nprint(platform.python_version())",
    )
    assert shown.strip() == interpreter.version
