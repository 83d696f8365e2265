"""Reading the host: releases, mirrors, package indexes and certificates."""

import pytest

from sandbox_images.errors import BaseImageError
from sandbox_images.host import (
    Release,
    apt_options,
    carries_credential,
    extra_certificates,
    image_sources,
    parse_release,
    pip_settings,
    resolve_mirror_files,
)

LISTS = "'{0}/Packages.xz' some_file 0 \n"
BOOKWORM = LISTS.format("https://m.example/debian/dists/bookworm/main/binary-amd64")
BOOKWORM_ALL = LISTS.format("https://m.example/debian/dists/bookworm/main/binary-all")
CONTRIB = LISTS.format("https://m.example/debian/dists/bookworm/contrib/binary-amd64")
SECURITY = LISTS.format("https://m.example/security/dists/bookworm-security/main/binary-amd64")
TRIXIE = LISTS.format("https://m.example/debian/dists/trixie/main/binary-amd64")
PRIVATE = LISTS.format("https://me:pw@m.example/debian/dists/bookworm/main/binary-amd64")
RELEASE_FILE = "'https://m.example/debian/dists/bookworm/InRelease' some_file 0 \n"
SOURCE = "'https://m.example/debian/dists/bookworm/main/source/Sources.xz' some_file 0 \n"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("ID=debian\nVERSION_CODENAME=bookworm\n", Release("debian", "bookworm")),
        ('# note\nID="debian"\nVERSION_CODENAME="trixie"\n', Release("debian", "trixie")),
        ("VERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n", Release("ubuntu", "noble")),
    ],
)
def test_a_release_is_read(text: str, release: Release) -> None:
    assert parse_release(text) == release


def test_a_system_without_a_codename_is_refused_with_a_remedy() -> None:
    with pytest.raises(BaseImageError, match=r"Some Linux.*VERSION_CODENAME.*registry"):
        parse_release('PRETTY_NAME="Some Linux"\nID=some\n')


@pytest.mark.parametrize(
    ("listing", "sources"),
    [
        ("", []),
        (SECURITY, []),
        (TRIXIE, []),
        (RELEASE_FILE + SOURCE, []),
        (PRIVATE, []),
        (BOOKWORM + BOOKWORM_ALL, ["deb https://m.example/debian bookworm main"]),
        (BOOKWORM + CONTRIB, ["deb https://m.example/debian bookworm main contrib"]),
        (
            RELEASE_FILE + BOOKWORM + TRIXIE + SECURITY,
            [
                "deb https://m.example/debian bookworm main",
                "deb https://m.example/security bookworm-security main",
            ],
        ),
    ],
)
def test_the_image_gets_the_sources_of_its_own_release(listing: str, sources: list[str]) -> None:
    assert image_sources(listing, "bookworm") == sources


@pytest.mark.parametrize(
    "address", ["mirror+file:/etc/apt/m.list", "mirror+file:///etc/apt/m.list"]
)
def test_a_mirror_file_is_followed(address: str) -> None:
    listing = BOOKWORM.replace("https://m.example/debian", address)
    read = {
        "/etc/apt/m.list": "# mirrors\nhttps://m.example/debian/\tpriority:1\nhttps://b.example\n"
    }
    assert resolve_mirror_files(listing, lambda path: read[str(path)]) == BOOKWORM


def test_only_settings_that_reach_the_mirror_are_copied() -> None:
    dump = (
        'APT::Architecture "amd64";\n'
        'Acquire::Check-Valid-Until "false";\n'
        'Acquire::http::Proxy "http://proxy.example:3128";\n'
        'Acquire::https::Proxy "http://me:pw@proxy.example:3128";\n'
        'Acquire::http "";\n'
    )
    assert apt_options(dump) == [
        'Acquire::Check-Valid-Until "false"',
        'Acquire::http::Proxy "http://proxy.example:3128"',
    ]


@pytest.mark.parametrize(
    ("files", "environ", "settings"),
    [
        ([], {}, {}),
        (["[global]\ntimeout = 60\n"], {}, {}),
        (
            ["[global]\nindex-url = https://a.example/simple\n"],
            {},
            {"index-url": "https://a.example/simple"},
        ),
        (
            [
                "[global]\nindex-url = https://a.example\n",
                "[install]\nindex-url = https://b.example",
            ],
            {},
            {"index-url": "https://b.example"},
        ),
        (
            ["[global]\nindex-url = https://a.example\ntrusted-host = a.example\n"],
            {"PIP_INDEX_URL": "http://c.example/simple"},
            {"index-url": "http://c.example/simple", "trusted-host": "a.example"},
        ),
        (["[global]\nextra-index-url = file:///srv/wheels\n"], {}, {}),
        (["[global]\nindex-url = https://me:pw@a.example\ntrusted-host = a.example\n"], {}, {}),
        (
            ["[global]\nextra-index-url = file:///srv\n  https://b.example/simple\n"],
            {},
            {"extra-index-url": "https://b.example/simple"},
        ),
    ],
)
def test_the_package_index_is_copied_but_no_credential(
    files: list[str], environ: dict[str, str], settings: dict[str, str]
) -> None:
    assert pip_settings(files, environ) == settings


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        ("https://m.example/simple", False),
        ("https://m.example/a@b", False),
        ("https://token@m.example/simple", True),
        ("http://me:pw@m.example", True),
    ],
)
def test_credentials_in_addresses_are_seen(url: str, answer: bool) -> None:
    assert carries_credential(url) is answer


def pem(body: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"


@pytest.mark.parametrize(
    ("bundle", "known", "extra"),
    [
        ("", [], []),
        (f"{pem('AAAA')}\n{pem('BBBB')}\n", [pem("BBBB")], [pem("AAAA")]),
        (f"# mine\n{pem('AAAA')}\n{pem('AAAA')}\n", [], [pem("AAAA")]),
        (pem("AA\r\nAA"), [pem("AAAA")], []),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n", [], []),
    ],
)
def test_only_certificates_that_debian_lacks_are_added(
    bundle: str, known: list[str], extra: list[str]
) -> None:
    assert extra_certificates(bundle, known) == extra
