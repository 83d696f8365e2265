"""Hosts and base URLs."""

import pytest

from osmosis_ai.common.addresses import checked_base_url, is_loopback, netloc


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("", False),
    ],
)
def test_which_hosts_are_this_machine(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "127.0.0.1:80"),
        ("host.example.com", "host.example.com:80"),
        ("::1", "[::1]:80"),
        ("0.0.0.0", "127.0.0.1:80"),
        ("", "127.0.0.1:80"),
        ("::", "[::1]:80"),
    ],
)
def test_a_host_and_port_in_a_url(host: str, expected: str) -> None:
    assert netloc(host, 80) == expected


@pytest.mark.parametrize("url", ["http://host/", "https://host:8900/some/path", "http://[::1]:80"])
def test_a_base_url(url: str) -> None:
    assert checked_base_url(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "host:80",
        "ftp://host",
        "http://",
        "http://host?a=b",
        "http://host#a",
        "http://user@host",
        "http://:secret@host",
    ],
)
def test_what_is_no_base_url(url: str) -> None:
    with pytest.raises(ValueError, match="agent_url"):
        checked_base_url(url, "agent_url")
