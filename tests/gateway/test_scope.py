"""Who may call what."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.gateway import Gateway
from osmosis_ai.gateway.addresses import checked_rollout_id, parse_tcp_path, rollout_url
from tests.gateway.clients import PRODUCT, post

BODY = {"messages": PRODUCT}


async def raw_post(url: str, headers: dict[str, str]) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(f"{url}/chat/completions", json=BODY, headers=headers)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic dXNlcjpwdw=="},
        {"Authorization": b"Bearer \xff\xfe"},
    ],
)
async def test_without_its_token_401(gateway: Gateway, headers: dict[str, str]) -> None:
    async with gateway.open("r1", "embedded/echo") as endpoint:
        answer = await raw_post(endpoint.url, headers)
        assert endpoint.calls == []
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"


async def test_another_rollouts_token_403(gateway: Gateway) -> None:
    async with (
        gateway.open("r1", "embedded/echo") as one,
        gateway.open("r2", "embedded/echo") as two,
    ):
        assert one.token != two.token
        answer = await post(one, BODY, token=two.token)
        assert (await post(two, BODY)).status_code == 200
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "wrong_rollout"


async def test_closed_410_unknown_404(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/echo") as endpoint:
        assert (await post(endpoint, BODY)).status_code == 200
    assert (await post(endpoint, BODY)).status_code == 410
    unknown = await raw_post(endpoint.url.replace("r1", "r2"), {})
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == "rollout_not_found"


async def test_a_reopened_rollout_has_a_new_token(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/echo") as before:
        pass
    async with gateway.open("r1", "embedded/echo") as after:
        assert (await post(after, BODY, token=before.token)).status_code == 401
        assert (await post(after, BODY)).status_code == 200


async def test_an_open_id_cannot_be_opened_again(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/echo") as endpoint:
        with pytest.raises(ValueError, match="'r1' has an open endpoint"):
            async with gateway.open("r1", "embedded/echo"):
                pass
        assert (await post(endpoint, BODY)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/rollouts/r1/v1/chat/completions"),
        ("POST", "/rollouts/r1/v1/models"),
        ("POST", "/rollouts/r1/v1/embeddings"),
        ("POST", "/rollouts/r1/v1/chat/completions/"),
        ("GET", "/rollouts/r1/v1"),
        ("GET", "/"),
        ("POST", "/v1/chat/completions"),
    ],
)
async def test_anything_else_404_in_openais_shape(gateway: Gateway, method: str, path: str) -> None:
    async with gateway.open("r1", "embedded/echo") as endpoint:
        headers = {"Authorization": f"Bearer {endpoint.token}"}
        async with httpx.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{gateway.port}{path}"
            answer = await client.request(method, url, headers=headers)
    assert answer.status_code == 404
    assert set(answer.json()["error"]) == {"message", "type", "code"}


@pytest.mark.parametrize(
    "rollout_id", ["run 1:a", "日本語", "a%2Fb", "50%", "?q#f", "..hidden", "a+b&c", "x'\"y"]
)
async def test_odd_ids_work_in_urls(gateway: Gateway, rollout_id: str) -> None:
    async with gateway.open(rollout_id, "embedded/echo") as endpoint:
        assert (await post(endpoint, BODY)).status_code == 200
        assert gateway.find(endpoint.url) is endpoint


@pytest.mark.parametrize("rollout_id", ["", ".", "..", "a/b", "../x", "a\\b", "a\0b", "é" * 200])
async def test_ids_that_are_no_name_are_refused(gateway: Gateway, rollout_id: str) -> None:
    with pytest.raises(ValueError, match="id"):
        async with gateway.open(rollout_id, "embedded/echo"):
            pass


@given(st.text(min_size=1, max_size=40))
def test_every_accepted_id_survives_its_url(rollout_id: str) -> None:
    try:
        checked_rollout_id(rollout_id)
    except ValueError:
        return
    path = httpx.URL(rollout_url("http://127.0.0.1", rollout_id)).raw_path.decode()
    address = parse_tcp_path(path)
    assert address is not None
    assert address.rollout_id == rollout_id


async def test_endpoints_are_found_by_url_while_they_live(gateway: Gateway) -> None:
    async with Gateway() as other, gateway.open("r1", "embedded/echo") as endpoint:
        for url in (endpoint.url, f"{endpoint.url}/", f"{endpoint.url}/chat/completions"):
            assert gateway.find(url) is endpoint
            assert other.find(url) is None
        for url in (f"{endpoint.url}/models", "http://127.0.0.1:9/v1", "", "embedded/echo"):
            assert gateway.find(url) is None
    assert gateway.find(endpoint.url) is None


async def test_a_gateway_that_does_not_run_opens_nothing() -> None:
    gateway = Gateway()
    with pytest.raises(RuntimeError, match="not running"):
        async with gateway.open("r1", "embedded/echo"):
            pass
