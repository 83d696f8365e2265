"""The extra resolves from scratch beside Harbor, by the override that pyproject.toml holds."""

import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

from harbor_backend.program.bundle.uv import find_uv

ROOT = Path(__file__).parents[5]


def resolve(*options: str) -> "subprocess.CompletedProcess[str]":
    """Resolve Harbor and SkyPilot with nothing locked."""
    command = [find_uv(), "pip", "compile", "--no-header", "--quiet", "--python-version", "3.12"]
    command += ["--extra", "server", "--extra", "harbor", "--extra", "skypilot", *options]
    return subprocess.run(
        [*command, "pyproject.toml"], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(300)
def test_the_extra_resolves_from_scratch() -> None:
    done = resolve()
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", done.stdout, re.MULTILINE))
    assert Version(found["harbor"]) >= Version("0.25")
    assert Version(found["skypilot"]) >= Version("0.14.1")
    assert Version(found["uvicorn"]) >= Version("0.38")


@pytest.mark.timeout(300)
def test_without_the_override_it_would_not(tmp_path: Path) -> None:
    """When this fails, the conflict is gone, and the override can go too."""
    stripped = (ROOT / "pyproject.toml").read_text().replace("override-dependencies", "unused")
    (tmp_path / "pyproject.toml").write_text(stripped.replace("[tool.uv]", "[tool.unused]"))
    (tmp_path / "README.md").write_text("")
    command = [find_uv(), "pip", "compile", "--quiet", "--python-version", "3.12"]
    command += ["--extra", "server", "--extra", "harbor", "--extra", "skypilot", "pyproject.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "uvicorn" in done.stderr


def test_both_import_here() -> None:
    import harbor
    import sky

    assert (harbor.__name__, sky.__name__) == ("harbor", "sky")
    assert Version(version("uvicorn")) >= Version("0.38")
