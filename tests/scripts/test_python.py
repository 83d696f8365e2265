"""The interpreter finder, against made-up machines."""

import sys
from pathlib import Path

import pytest

from tests.scripts.shell import bash, executable

# Answers the finder's two questions as an interpreter of that version would.
WORKING = '#!/bin/sh\ncase "$*" in *sys.executable*) echo "$0" ;; *) echo {version} ;; esac\n'
# What a pyenv shim does when its version is not selected.
SHIM = "#!/bin/sh\necho 'pyenv: command not found; it exists in these versions' >&2\nexit 127\n"


class Machine:
    """A PATH directory, a pyenv root and nothing else."""

    def __init__(self, root: Path) -> None:
        self.path = root / "path"
        self.pyenv = root / "pyenv"
        self.path.mkdir()

    def on_path(self, name: str, version: str | None) -> str:
        text = WORKING.format(version=version) if version else SHIM
        return str(executable(self.path / name, text))

    def under_pyenv(self, full: str, version: str | None) -> str:
        text = WORKING.format(version=version) if version else SHIM
        return str(executable(self.pyenv / "versions" / full / "bin" / "python", text))

    def find(self) -> str | None:
        done = bash(
            "find_python",
            "python",
            environ={
                "PATH": str(self.path),
                "PYENV_ROOT": str(self.pyenv),
                "SYSTEM_PYTHONS": "",
            },
        )
        return done.stdout.strip() if done.returncode == 0 else None


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_at_all(machine: Machine) -> None:
    assert machine.find() is None


def test_an_unselected_shim_does_not_count(machine: Machine) -> None:
    machine.on_path("python3.12", None)
    assert machine.find() is None


def test_behind_a_failing_shim_the_pyenv_version_is_found(machine: Machine) -> None:
    machine.on_path("python3.12", None)
    machine.on_path("python3.13", None)
    wanted = machine.under_pyenv("3.12.1", "3.12")
    machine.under_pyenv("3.13.0", "3.13")
    assert machine.find() == wanted


def test_the_root_that_pyenv_names_is_searched(machine: Machine, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    executable(machine.path / "pyenv", f"#!/bin/sh\necho {elsewhere}\n")
    wanted = executable(
        elsewhere / "versions" / "3.13.2" / "bin" / "python", WORKING.format(version="3.13")
    )
    assert machine.find() == str(wanted)


@pytest.mark.parametrize(
    ("on_path", "under_pyenv", "wanted"),
    [
        ({"python3.14": "3.14", "python3": "3.13"}, {}, "python3"),
        ({"python3.14": "3.14"}, {"3.12.9": "3.12"}, "3.12.9"),
        ({"python3.14": "3.14"}, {}, "python3.14"),
        ({"python3.13": "3.13", "python3.12": "3.12"}, {}, "python3.12"),
        ({"python": "3.13"}, {}, "python"),
    ],
)
def test_the_oldest_supported_version_wins(
    machine: Machine, on_path: dict[str, str], under_pyenv: dict[str, str], wanted: str
) -> None:
    paths = {name: machine.on_path(name, version) for name, version in on_path.items()}
    paths |= {full: machine.under_pyenv(full, version) for full, version in under_pyenv.items()}
    assert machine.find() == paths[wanted]


def test_a_real_interpreter_is_recognised() -> None:
    done = bash(f'python_version "{sys.executable}"', "python")
    assert done.stdout.strip() == f"{sys.version_info.major}.{sys.version_info.minor}"


def test_an_interpreter_without_ssl_is_refused(tmp_path: Path) -> None:
    crippled = executable(
        tmp_path / "python3.12",
        f'#!/bin/sh\nshift 2\nexec {sys.executable} -I -c "import sys\n'
        'sys.modules[\\"ssl\\"] = None\n$1"\n',
    )
    done = bash(f'python_version "{crippled}" || echo refused', "python")
    assert done.stdout.strip() == "refused"
