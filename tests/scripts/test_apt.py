"""Reading a machine's apt sources, against made-up roots."""

import shutil
from pathlib import Path

import pytest

from tests.scripts.shell import bash

DEB822 = """\
Types: deb deb-src
# a comment
URIs: https://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: https://mirror.example/debian-security/
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/security.gpg

Enabled: no
Types: deb
URIs: https://off.example/debian
Suites: trixie
Components: main
"""
ONE_LINE = """\
# deb https://off.example/debian bookworm main
deb [arch=amd64,i386 signed-by=/etc/keys/a.asc] https://mirror.example/debian bookworm main
deb [signed-by=/etc/keys/b.asc] https://mirror.example/security bookworm-security main
deb-src https://mirror.example/debian trixie main
"""
EMBEDDED = """\
Types: deb
URIs: https://mirror.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS/xcRfwEQWzr
 -----END PGP PUBLIC KEY BLOCK-----
"""

pytestmark = pytest.mark.skipif(
    shutil.which("apt-get") is None, reason="reads sources through apt itself"
)


class Root:
    """A directory with its own /etc/apt."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.apt = path / "etc" / "apt"
        (self.apt / "sources.list.d").mkdir(parents=True)

    def bash(self, script: str) -> str:
        done = bash(script, "apt", environ={"APT_ROOT": str(self.path)})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def deb822(tmp_path: Path) -> Root:
    root = Root(tmp_path)
    (root.apt / "sources.list.d" / "debian.sources").write_text(DEB822)
    return root


@pytest.fixture
def one_line(tmp_path: Path) -> Root:
    root = Root(tmp_path)
    (root.apt / "sources.list").write_text(ONE_LINE)
    return root


def test_the_mirror_of_a_suite(deb822: Root) -> None:
    assert deb822.bash("apt_mirror bookworm") == "https://mirror.example/debian"
    assert deb822.bash("apt_mirror bookworm-security") == "https://mirror.example/debian-security"


def test_the_mirror_of_a_one_line_file(one_line: Root) -> None:
    assert one_line.bash("apt_mirror bookworm") == "https://mirror.example/debian"


@pytest.mark.parametrize("suite", ["trixie", "bookwor", "sid"])
@pytest.mark.parametrize("machine", ["deb822", "one_line"])
def test_disabled_source_only_and_unknown_suites_have_no_mirror(
    machine: str, suite: str, request: pytest.FixtureRequest
) -> None:
    assert request.getfixturevalue(machine).bash(f"apt_mirror {suite}") == ""


@pytest.mark.parametrize(
    ("uri", "key"),
    [
        ("https://mirror.example/debian/", "/usr/share/keyrings/debian.gpg"),
        ("https://mirror.example/debian-security", "/usr/share/keyrings/security.gpg"),
        ("https://other.example/debian", ""),
    ],
)
def test_each_stanza_has_its_own_key(deb822: Root, uri: str, key: str) -> None:
    assert deb822.bash(f"apt_key {uri}") == key


@pytest.mark.parametrize(
    ("uri", "key"),
    [
        ("https://mirror.example/debian/", "/etc/keys/a.asc"),
        ("https://mirror.example/security", "/etc/keys/b.asc"),
        ("https://off.example/debian", ""),
    ],
)
def test_each_line_has_its_own_key(one_line: Root, uri: str, key: str) -> None:
    assert one_line.bash(f"apt_key {uri}") == key


def test_a_key_inside_the_file_is_not_taken_for_a_path(tmp_path: Path) -> None:
    root = Root(tmp_path)
    (root.apt / "sources.list.d" / "debian.sources").write_text(EMBEDDED)
    assert root.bash("apt_key https://mirror.example/debian") == ""


def test_a_suite_is_added_from_the_same_mirror_with_the_same_key(deb822: Root) -> None:
    deb822.bash("apt_add_suite trixie bookworm")
    added = deb822.apt / "sources.list.d" / "osmosis-trixie.sources"
    assert added.read_text() == (
        "Types: deb\nURIs: https://mirror.example/debian\nSuites: trixie\n"
        "Components: main\nSigned-By: /usr/share/keyrings/debian.gpg\n"
    )
    pin = (deb822.apt / "preferences.d" / "osmosis-trixie").read_text()
    assert "release n=trixie" in pin
    assert "Pin-Priority: 100" in pin
    # apt itself accepts what was written, and a second run adds nothing.
    assert deb822.bash("apt_mirror trixie") == "https://mirror.example/debian"
    assert deb822.bash("apt_add_suite trixie bookworm") == ""


def test_a_dropped_suite_leaves_no_trace(one_line: Root) -> None:
    before = sorted(one_line.path.rglob("*.sources"))
    one_line.bash("apt_add_suite trixie bookworm >/dev/null && apt_drop_suite trixie")
    assert sorted(one_line.path.rglob("*.sources")) == before
    assert list((one_line.apt / "preferences.d").iterdir()) == []


def test_without_a_mirror_to_go_by_nothing_is_written(tmp_path: Path) -> None:
    root = Root(tmp_path)
    done = bash("apt_add_suite trixie bookworm", "apt", environ={"APT_ROOT": str(root.path)})
    assert done.returncode == 1
    assert "none of this machine's sources serves bookworm" in done.stderr
    assert list((root.apt / "sources.list.d").iterdir()) == []


@pytest.mark.parametrize(
    ("version", "major"),
    [("1.29.2-3", "1"), ("2.26.1-4", "2"), ("1:2.40.3", "2"), ("26.1.5+dfsg1-9", "26"), ("", "")],
)
def test_major_versions(version: str, major: str) -> None:
    assert bash(f'version_major "{version}"', "apt").stdout.strip() == major
