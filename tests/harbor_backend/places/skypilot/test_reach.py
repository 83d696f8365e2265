"""Which URLs a remote sandbox can reach."""

import pytest

from harbor_backend.places.skypilot.reach import Reach, checked_agent_url, reach_of, reaches_out


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.8.9.1", "127.1", "2130706433", "0x7f000001", "localhost", "LOCALHOST",
        "localhost.", "api.localhost", "0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]",
        "host.docker.internal", "Host.Docker.Internal", "169.254.169.254", "[fe80::1%25eth0]",
    ],
)  # fmt: skip
def test_what_means_this_machine_is_refused(host: str) -> None:
    assert not reaches_out(f"http://{host}:8900")
    with pytest.raises(ValueError, match="agent_base_url"):
        checked_agent_url(f"http://{host}:8900")


@pytest.mark.parametrize(
    "url",
    [
        "https://rollouts.example.com",
        "https://203.0.113.7:8443/engine",
        "http://engine.default.svc.cluster.local:8900",
        "http://engine:8900",
        "http://10.1.2.3:8900",
        "http://[fd00::1]:8900",
    ],
)
def test_what_leads_here_from_elsewhere_passes(url: str) -> None:
    assert checked_agent_url(f"{url}/") == url


@pytest.mark.parametrize("url", ["http://example.com:80", "http://8.8.8.8:8900"])
def test_a_token_never_crosses_a_public_network_in_clear_text(url: str) -> None:
    with pytest.raises(ValueError, match="clear text"):
        checked_agent_url(url)


@pytest.mark.parametrize(
    "url",
    ["", "engine:8900", "ftp://engine", "https://u@engine", "https://engine?x=1", "http://e:99999"],
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="agent_base_url"):
        checked_agent_url(url)


def test_the_gateway_listens_on_the_urls_port() -> None:
    url = "http://engine:8900"
    assert reach_of(url, None) == Reach(url, "0.0.0.0", 8900)


def test_behind_an_ingress_the_port_must_be_said() -> None:
    url = "https://rollouts.example.com"
    with pytest.raises(ValueError, match="agent_bind"):
        reach_of(url, None)
    assert reach_of(url, "127.0.0.1:8900") == Reach(url, "127.0.0.1", 8900)
    assert reach_of(url, "[::]:8900") == Reach(url, "::", 8900)


@pytest.mark.parametrize("bind", ["", "8900", "0.0.0.0:", "0.0.0.0:x", "0.0.0.0:0", "h:70000"])
def test_a_wrong_bind_is_refused(bind: str) -> None:
    with pytest.raises(ValueError, match="agent_bind="):
        reach_of("https://rollouts.example.com", bind)
