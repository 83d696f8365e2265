"""Hosts and base URLs."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.common.addresses import (
    checked_base_url,
    is_loopback,
    literal_address,
    netloc,
    reached_addresses,
)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("127.1", True),
        ("2130706433", True),
        ("0x7f.0.0.1", True),
        ("0177.0.0.1", True),
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


def spellings(number: int) -> list[str]:
    """The ways to write one IPv4 address."""
    a, b, c, d = number.to_bytes(4)
    return [
        f"{a}.{b}.{c}.{d}",
        f"{a}.{b}.{c}.{d}.",
        str(number),
        hex(number),
        f"0{number:o}",
        f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{number & 0xFFFF}",
        f"{a:#x}.0{b:o}.{c}.{d:#X}",
        f"%3{a // 100}{a % 100:02d}.{b}.{c}.{d}" if a > 99 else f"{a}.{b}.{c}.{d}",
        f"[::ffff:{a}.{b}.{c}.{d}]",
        f"::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}",
    ]


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_is_the_same_in_every_spelling(number: int) -> None:
    for text in spellings(number):
        assert literal_address(text) == IPv4Address(number), text


@given(st.from_regex(r"[0-9a-fx.]{1,20}", fullmatch=True))
def test_what_the_system_reads_as_an_address_is_read_as_the_same(text: str) -> None:
    try:
        known = IPv4Address(socket.inet_aton(text))
    except OSError:
        return
    assert literal_address(text) == known


@given(st.text())
def test_any_text_is_an_address_or_none(text: str) -> None:
    address = literal_address(text)
    assert (address is None) == (reached_addresses(text) == [])


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1))
def test_an_ipv4_address_is_found_in_what_translators_make_of_it(number: int, any16: int) -> None:
    high, low = number >> 16, number & 0xFFFF
    top = number >> 24
    for text in (
        f"64:ff9b::{high:x}:{low:x}",
        f"64:ff9b:1::{high:x}:{low:x}",
        f"64:ff9b:1:{any16:x}::{high:x}:{low:x}",
        f"64:ff9b:1:{high:x}:{low >> 8:x}:{(low & 0xFF) << 8:x}::",
        f"64:ff9b:1:{top:x}:{high & 0xFF:x}:{low:x}::",
        f"64:ff9b:1:{any16:x}:{top:x}:{number >> 8 & 0xFFFF:x}:{(low & 0xFF) << 8:x}:0",
        f"2002:{high:x}:{low:x}:{any16:x}::1",
        f"2001:0:{high:x}:{low:x}::",
        f"2001:0:1:1::{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
        f"2001:db8::{any16:x}:0:5efe:{high:x}:{low:x}",
        f"::ffff:0:{high:x}:{low:x}",
    ):
        assert IPv4Address(number) in reached_addresses(text), text


def test_an_address_that_holds_no_other_is_itself() -> None:
    for text in ("2001:db8::1", "10.1.2.3"):
        assert reached_addresses(text) == [ip_address(text)]
    assert reached_addresses("fe80::1%eth0") == [IPv6Address("fe80::1%eth0")]
    assert reached_addresses("trainer.example.com") == []
