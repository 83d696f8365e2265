"""How an image is built: with BuildKit wherever the command and the engine have it."""

from pathlib import Path

import pytest

from harbor_backend.places.docker import client
from harbor_backend.places.docker.client import Builder, DockerCommandError, build_image, builder

BUILDX = Builder(("buildx", "build", "--load", "--progress", "plain"))
BUILT_IN = Builder(("build", "--progress", "plain"), {"DOCKER_BUILDKIT": "1"})
CLASSIC = Builder(("build",), {"DOCKER_BUILDKIT": "0"})

# Stands in for the command: what it says of a plug-in and of its version is the case's.
DOCKER = """#!/bin/sh
shift 2
case "$1 $2" in
"buildx inspect") {inspect} ;;
"version --format") echo {version} ;;
*) echo "$DOCKER_BUILDKIT $*"; exit 1 ;;
esac
"""
RUNS, NO_PLUG_IN = "echo 'Status: running'", "exit 1"
NO_BUILDKIT = "echo 'Error: the engine has no BuildKit'"


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an engine said to another test counts for nothing."""
    monkeypatch.setattr(client, "_found", {})
    monkeypatch.delenv("DOCKER_BUILDKIT", raising=False)


@pytest.mark.parametrize(
    ("inspect", "version", "wish", "expected"),
    [
        (RUNS, "28.2.2", None, BUILDX),
        (RUNS, "28.2.2", "1", BUILDX),
        (RUNS, "28.2.2", "0", CLASSIC),
        (NO_BUILDKIT, "28.2.2", None, CLASSIC),
        (NO_PLUG_IN, "28.2.2", None, CLASSIC),
        (NO_PLUG_IN, "20.10.24", None, BUILT_IN),
        (NO_PLUG_IN, "18.09.1", None, CLASSIC),
        (NO_PLUG_IN, "unknown", None, CLASSIC),
    ],
)
def test_the_builder_of_an_engine(
    inspect: str,
    version: str,
    wish: str | None,
    expected: Builder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "docker").write_text(DOCKER.format(inspect=inspect, version=version))
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if wish is not None:
        monkeypatch.setenv("DOCKER_BUILDKIT", wish)
    assert builder("unix:///here") == expected
    with pytest.raises(DockerCommandError) as caught:
        build_image("unix:///here", tmp_path, "x:1", timeout_sec=10)
    variable = expected.environment.get("DOCKER_BUILDKIT", wish or "")
    assert str(caught.value).startswith(f"{variable} {' '.join(expected.arguments)}".strip())
    assert ("without BuildKit" in str(caught.value)) is (expected == CLASSIC)


def test_buildkit_that_comes_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for inspect, expected in ((NO_PLUG_IN, CLASSIC), (RUNS, BUILDX), (NO_PLUG_IN, BUILDX)):
        (tmp_path / "docker").write_text(DOCKER.format(inspect=inspect, version="28.2.2"))
        (tmp_path / "docker").chmod(0o755)
        assert builder("unix:///here") == expected


def test_without_the_command_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(DockerCommandError, match="install docker-cli and docker-buildx"):
        build_image("unix:///here", Path("."), "x:1", timeout_sec=10)


def test_what_a_build_printed_is_told_without_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text(
        "#!/bin/sh\nprintf '\\033[31mred\\033[0m\\tthe reason\\n'; exit 1\n"
    )
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(DockerCommandError) as caught:
        build_image("unix:///here", tmp_path, "x:1", timeout_sec=10)
    assert str(caught.value).startswith("red the reason\n")
