"""Where set-up has uv, an interpreter and the environment from, on made-up machines."""

from pathlib import Path

import pytest

from tests.scripts.shell import bash, executable
from tests.scripts.test_docker import candidates

POLICIES = {
    "a candidate": ("  Installed: (none)\n  Candidate: 2.26.1-4\n", "2.26.1-4"),
    "none": ("  Installed: 1.0\n  Candidate: (none)\n", ""),
    "an unknown package": ("", ""),
}


@pytest.mark.parametrize("case", POLICIES)
def test_what_apt_would_install(case: str) -> None:
    policy, version = POLICIES[case]
    script = f"apt-cache() {{ printf '%s' '{policy}'; }}; apt_candidate some-package"
    assert bash(script, "apt").stdout.strip() == version


PYTHONS = {
    # what apt has, whether it can be used, whether it has a Python for us
    "Debian 13": ("3.13.5-1", "yes", True),
    "the oldest that will do": ("3.12.0-1", "yes", True),
    "Debian 12": ("3.11.2-1+b1", "yes", False),
    "none": ("", "yes", False),
    "a machine without apt": ("3.13.5-1", "no", False),
}


@pytest.mark.parametrize("case", PYTHONS)
def test_whether_this_release_has_a_python(case: str) -> None:
    version, usable, expected = PYTHONS[case]
    machine = candidates(python3=version) if version else "apt_candidate() { :; }\n"
    script = (
        f'{machine}apt_usable() {{ [ "{usable}" = yes ]; }}; apt_update() {{ :; }}\n'
        "apt_has_python && echo yes || echo no"
    )
    assert bash(script, "venv").stdout.strip() == ("yes" if expected else "no")


# found before and after an installation, apt's, uv's; the chosen one, what was done
SOURCES = {
    "one is there": ("/a/python", "", "no", "", "/a/python", ""),
    "apt has one": ("", "/usr/bin/python3", "yes", "/uv/python", "/usr/bin/python3", "apt"),
    "what apt has will not do": ("", "", "yes", "/uv/python", "/uv/python", "apt uv"),
    "uv downloads one": ("", "", "no", "/uv/python", "/uv/python", "uv"),
    "there is none": ("", "", "no", "", "none", "uv"),
}


@pytest.mark.parametrize("case", SOURCES)
def test_where_an_interpreter_comes_from(case: str) -> None:
    first, later, apt, downloaded, chosen, did = SOURCES[case]
    script = f"""
PYTHON_WANTED=it did='' UV=
find_python() {{
    local found='{first}'
    case "$did" in apt*) found='{later}' ;; esac
    printf %s "$found"
    [ -n "$found" ]
}}
python_version() {{ echo 3.12; }}
apt_has_python() {{ [ '{apt}' = yes ]; }}
apt_install() {{ did='apt'; }}
ensure_uv() {{ did="$did uv"; }}
download_python() {{ printf %s '{downloaded}'; [ -n '{downloaded}' ]; }}
ensure_python >/dev/null || PYTHON=none
echo "$PYTHON:$did"
"""
    done = bash(script, "venv")
    python, _, what = done.stdout.strip().partition(":")
    assert (python, what.strip()) == (chosen, did)
    assert ("uv cannot download one" in done.stderr) is (chosen == "none")


def test_a_uv_that_runs_is_used_and_one_that_does_not_is_passed_over(tmp_path: Path) -> None:
    on_path = executable(tmp_path / "path" / "uv", "#!/bin/sh\nexit 0\n")
    own = executable(tmp_path / ".venv-tools" / "bin" / "uv", "#!/bin/sh\nexit 0\n")
    script = f'PATH="{on_path.parent}:$PATH" REPO="{tmp_path}"\nfind_uv || echo none'
    found = [bash(script, "uv").stdout.strip()]
    for path in (on_path, own):
        executable(path, "#!/bin/sh\nexit 1\n")
        found.append(bash(script, "uv").stdout.strip())
    assert found == [str(on_path), str(own), "none"]


PIPS: dict[str, tuple[str, str, str, str]] = {
    # interpreters with pip, whether apt can be used; what is done, what is said
    "the one that was found": ("/a/python /usr/bin/python3", "yes", "/a/python", ""),
    "Debian's": ("/usr/bin/python3", "yes", "/usr/bin/python3", ""),
    "none, and none can be had": ("", "no", "", "neither uv nor a Python with pip is here"),
}


@pytest.mark.parametrize("case", PIPS)
def test_uv_is_installed_by_an_interpreter_with_pip(case: str, tmp_path: Path) -> None:
    pips, usable, python, said = PIPS[case]
    script = f"""
REPO="{tmp_path}"
pip_of() {{
    local each
    for each in "$@"; do
        case " {pips} " in *" $each "*) [ -z "$each" ] || {{ echo "$each"; return 0; }} ;; esac
    done
    return 1
}}
apt_usable() {{ [ "{usable}" = yes ]; }}
apt_install() {{ return 1; }}
run_quietly() {{ echo "$1"; }}
install_uv /a/python || echo failed
"""
    done = bash(script, "uv")
    assert done.stdout.strip() == (python or "failed")
    assert said in done.stderr
    assert (tmp_path / ".venv-tools" / "bin" / "uv").is_symlink() is bool(python)


VENVS: dict[str, tuple[bool, str | None, bool]] = {
    # whether its interpreter runs, what it was made from, whether it is current
    "as it is wanted": (True, "wanted", True),
    "of something else": (True, "other", False),
    "half made": (True, None, False),
    "its interpreter is gone": (False, "wanted", False),
}


@pytest.mark.parametrize("case", VENVS)
def test_whether_the_environment_is_current(case: str, tmp_path: Path) -> None:
    runs, made_from, current = VENVS[case]
    executable(tmp_path / ".venv/bin/python", f"#!/bin/sh\nexit {int(not runs)}\n")
    if made_from is not None:
        (tmp_path / ".venv/.osmosis-made-from").write_text(made_from)
    script = f"""
REPO="{tmp_path}"
venv_wanted() {{ echo wanted; }}
python_version() {{ "$1"; }}
venv_current && echo yes || echo no
"""
    assert bash(script, "venv").stdout.strip() == ("yes" if current else "no")
