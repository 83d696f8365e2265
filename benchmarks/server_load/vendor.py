"""The vendor's published package, in a virtual environment of its own."""

import subprocess
import sys
from pathlib import Path

_VERSIONS = "from importlib.metadata import version as v; print(v('osmosis-ai'), v('uvicorn'))"


def install(directory: Path) -> tuple[Path, str]:
    """Install it from the package index; returns its interpreter and its version.

    Raises:
        RuntimeError: it cannot be installed here; the text says why.
    """
    python = directory / "bin" / "python"
    try:
        _run("uv", "venv", "--quiet", "--python", sys.executable, str(directory))
        _run("uv", "pip", "install", "--quiet", "-p", str(python), "osmosis-ai[server]")
        code = (
            "import importlib.metadata as m; print(m.version('osmosis-ai'), m.version('uvicorn'))"
        )
        version, uvicorn = _run(str(python), "-I", "-c", code).split()
    except (OSError, subprocess.CalledProcessError) as exc:
        raise RuntimeError(getattr(exc, "stderr", None) or str(exc)) from exc
    return python, f"{version}, uvicorn {uvicorn}"


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return done.stdout
