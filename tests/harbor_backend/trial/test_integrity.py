"""What an agent left, and whether it may decide over the tests."""

import pytest

from harbor_backend.places.sandbox import Sights
from harbor_backend.trial.integrity import MAX_FINDINGS, integrity, worse

SITE = "/usr/local/lib/python3.12/site-packages"

SUSPECT = [
    "/etc/ld.so.preload",
    "/etc/ld.so.conf.d/own.conf",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/lib64/ld-linux-x86-64.so.2",
    "/usr/bin/python3",
    "/usr/local/bin/python3.12",
    "/bin/sh",
    "/usr/local/sbin/cat",
    "/usr/bin/pytest",
    f"{SITE}/sitecustomize.py",
    "/app/venv/lib/python3.11/site-packages/sitecustomize.py",
    "/root/.local/lib/python3.12/site-packages/usercustomize.py",
    f"{SITE}/x.pth",
    "/usr/lib/python3/dist-packages/x.pth",
    "/usr/local/lib/python3.12/json/__init__.py",
    "/app/p-1.dist-info/entry_points.txt",
    "/conftest.py",
    "/tests/conftest.py",
    "/pytest.ini",
    "/etc/environment",
    "/etc/profile.d/own.sh",
    "/root/.bashrc",
    "/home/dev/.profile",
    "/tests",
    "/tests/test.sh",
    "/app/json.py",
    "/app/json",
    "/app/pytest.py",
]
HARMLESS = [
    "/app",
    "/app/answer.txt",
    "/app/src/json.py",
    "/app/jason.py",
    "/app/tests/conftest.py",
    "/app/pytest.ini",
    f"{SITE}/requests/__init__.py",
    f"{SITE}/requests-2.dist-info/METADATA",
    "/usr/local/lib/python3.12/__pycache__/os.cpython-312.pyc",
    "/usr/bin/jq",
    "/usr/share/doc/x",
    "/var/lib/dpkg/status",
    "/tmp/tests/test.sh",
    "/root/.cache/x",
    "/etc/hosts",
]


@pytest.mark.parametrize("path", SUSPECT)
def test_what_tests_load_or_call_is_told(path: str) -> None:
    found = integrity(Sights([], [path]), "/app")
    assert found["status"] == "suspect"
    assert found["findings"][0].startswith(f"{path} was changed: ")


def test_what_agents_work_on_is_not() -> None:
    found = integrity(Sights([], HARMLESS), "/app")
    assert found == {"level": "shared", "status": "clean", "findings": []}


def test_processes_are_told_and_bounded() -> None:
    found = integrity(Sights([f"{n} sleep {'9' * 5000}" for n in range(80)], []), "/app")
    assert found["status"] == "suspect"
    assert len(found["findings"]) == MAX_FINDINGS + 1
    assert found["findings"][-1] == "and 30 more"
    assert max(len(text) for text in found["findings"]) <= 2048


def test_who_did_not_look_does_not_call_it_clean() -> None:
    assert integrity(None, "/app")["status"] == "unknown"
    problem = Sights(None, None, "it did not answer")
    assert integrity(problem, "/app") == {
        "level": "shared", "status": "unknown", "findings": ["it did not answer"],
    }  # fmt: skip
    half = integrity(Sights(["7 sleep"], None, "too many changes"), "/app")
    assert (half["status"], len(half["findings"])) == ("suspect", 2)


def test_of_several_steps_the_worst_is_told() -> None:
    clean, unknown = integrity(Sights([], []), "/app"), integrity(None, "/app")
    suspect = integrity(Sights(["7 sleep"], []), "/app")
    assert worse(clean, unknown) is unknown
    assert worse(suspect, clean) is suspect
    assert worse(unknown, suspect) is suspect
