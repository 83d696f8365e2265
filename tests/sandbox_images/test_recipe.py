"""Recipes: what they ask for, and when two of them differ."""

import dataclasses
from pathlib import Path

import pytest

from sandbox_images.bootstrap import bootstrap_failure, build_root
from sandbox_images.errors import BaseImageError
from sandbox_images.host import Release
from sandbox_images.interpreter import this_interpreter
from sandbox_images.recipe import Recipe

PLAIN = Recipe(release=Release("debian", "trixie"))


@pytest.mark.parametrize(
    "change",
    [
        {"release": Release("debian", "bookworm")},
        {"sources": ("deb https://m.example/debian trixie main",)},
        {"apt_options": ('Acquire::Check-Date "false"',)},
        {"pip_conf": "[global]\nindex-url = https://m.example\n"},
        {"certificates": ("-----BEGIN CERTIFICATE-----",)},
    ],
)
def test_whatever_changes_the_image_changes_the_digest(change: dict[str, object]) -> None:
    other = dataclasses.replace(PLAIN, **change)  # type: ignore[arg-type]
    assert other.digest() != PLAIN.digest()
    assert dataclasses.replace(other).digest() == other.digest()


def test_the_image_says_that_it_is_ours() -> None:
    changes = PLAIN.changes()
    assert "LABEL ai.osmosis.image=base" in changes
    assert f"LABEL ai.osmosis.base-recipe={PLAIN.digest()}" in changes
    assert 'CMD ["python3"]' in changes


def test_the_command_reads_sources_only_when_there_are_some() -> None:
    overlay, target = Path("/w/overlay.tar"), Path("/w/root.tar")
    plain = PLAIN.bootstrap_command(["libssl3"], overlay, target)
    assert plain[0] == "mmdebstrap"
    assert plain[-2:] == ["trixie", "/w/root.tar"]
    assert any(word.startswith("--include=") and word.endswith(",libssl3") for word in plain)
    sourced = dataclasses.replace(PLAIN, sources=("deb https://m.example trixie main",))
    assert sourced.bootstrap_command([], overlay, target)[-3:] == ["trixie", "/w/root.tar", "-"]


def test_files_are_added_only_when_they_say_something() -> None:
    assert "etc/pip.conf" not in PLAIN.files()
    full = dataclasses.replace(PLAIN, pip_conf="[global]\n", certificates=("PEM",)).files()
    assert full["etc/pip.conf"] == "[global]\n"
    assert full["usr/local/share/ca-certificates/host-0.crt"] == "PEM\n"


def test_a_failed_bootstrap_shows_its_last_lines_and_a_remedy() -> None:
    message = bootstrap_failure(25, "\n".join(f"line {number}" for number in range(100)))
    assert "exit code 25" in message
    assert "line 99" in message
    assert "line 10\n" not in message
    assert "apt-get update" in message


def test_without_mmdebstrap_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BaseImageError, match="apt-get install mmdebstrap"):
        build_root(PLAIN, this_interpreter(), tmp_path)


def test_a_bootstrap_that_fails_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process that ends as mmdebstrap does when its mirror is gone."""
    bin_path = tmp_path / "bin"
    bin_path.mkdir()
    tool = bin_path / "mmdebstrap"
    tool.write_text("#!/bin/sh\necho 'E: unable to fetch the Release file' >&2\nexit 25\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_path}:/usr/bin:/bin")
    with pytest.raises(BaseImageError, match=r"exit code 25(.|\n)*unable to fetch"):
        build_root(PLAIN, this_interpreter(), tmp_path)
