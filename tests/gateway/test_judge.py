"""A judge's endpoint beside the policy's, and URLs for callers elsewhere."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from osmosis_ai.gateway import Gateway
from tests.gateway.clients import PRODUCT, post

BODY = {"messages": PRODUCT}


async def test_a_judge_is_a_world_of_its_own(tmp_path: Path) -> None:
    async with (
        Gateway(records_dir=tmp_path) as gateway,
        gateway.open("r1", "embedded/multiply") as policy,
        gateway.open("r1", "embedded/echo", kind="judge") as judge,
    ):
        assert policy.url != judge.url
        assert policy.token != judge.token
        assert gateway.find(judge.url) is judge
        assert gateway.find(policy.url) is policy
        for _ in range(2):
            assert (await post(judge, BODY)).status_code == 200
        assert (await post(policy, BODY)).status_code == 200
        for endpoint, token in ((policy, judge.token), (judge, policy.token)):
            assert (await post(endpoint, BODY, token=token)).status_code == 403
        assert (policy.summary().calls, judge.summary().calls) == (1, 2)
        assert (policy.kind, judge.kind) == ("policy", "judge")
    assert len((tmp_path / "r1.jsonl").read_text().splitlines()) == 1
    lines = (tmp_path / "r1.judge.jsonl").read_text().splitlines()
    assert [json.loads(line)["model"] for line in lines] == ["embedded/echo"] * 2


async def test_a_judge_has_a_socket_of_its_own(gateway: Gateway) -> None:
    with TemporaryDirectory(prefix="gw") as directory:
        path = Path(directory) / "judge.sock"
        async with (
            gateway.open("r1", "embedded/multiply"),
            gateway.open("r1", "embedded/echo", kind="judge") as judge,
            judge.listen_unix(path),
            httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path))) as client,
        ):
            answer = await client.post("http://x/v1/chat/completions", json=BODY)
    assert answer.json()["model"] == "embedded/echo"


async def test_a_judge_may_outlive_the_policys_endpoint(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/echo", kind="judge") as judge:
        async with gateway.open("r1", "embedded/echo") as policy:
            pass
        assert (await post(policy, BODY)).status_code == 410
        assert (await post(judge, BODY)).status_code == 200
    assert (await post(judge, BODY)).status_code == 410


async def test_each_kind_is_opened_once(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/echo", kind="judge"):
        with pytest.raises(ValueError, match="kind 'judge'"):
            async with gateway.open("r1", "embedded/echo", kind="judge"):
                pass


async def test_a_rollout_called_judge_is_not_a_judge(gateway: Gateway) -> None:
    async with (
        gateway.open("judge", "embedded/multiply") as policy,
        gateway.open("judge", "embedded/echo", kind="judge") as judge,
    ):
        assert (await post(policy, BODY)).json()["model"] == "embedded/multiply"
        assert (await post(judge, BODY)).json()["model"] == "embedded/echo"


async def test_no_rollout_can_take_a_judges_file(tmp_path: Path) -> None:
    async with Gateway(records_dir=tmp_path) as gateway:
        with pytest.raises(ValueError, match=r"ends in '\.judge'"):
            async with gateway.open("r1.judge", "embedded/echo"):
                pass


async def test_an_advertised_url_is_what_callers_get() -> None:
    with pytest.raises(ValueError, match="advertise_url"):
        Gateway(advertise_url="ftp://x")
    async with (
        Gateway() as inner,
        Gateway(advertise_url=f"http://localhost:{inner.port}/") as gateway,
        gateway.open("r 1", "embedded/echo") as endpoint,
    ):
        assert endpoint.url == f"http://localhost:{inner.port}/rollouts/r%201/v1"
        assert gateway.find(endpoint.url) is endpoint
        assert gateway.find(f"http://127.0.0.1:{gateway.port}/rollouts/r%201/v1") is endpoint
        # What serves the advertised address is the operator's; here it is not us.
        assert (await post(endpoint, BODY)).status_code == 404


@pytest.mark.parametrize(
    "url", ["gateway.example/v1", "http://", "http://x?q=1", "http://x#f", "http://u:p@x", ""]
)
def test_an_advertised_url_must_be_a_base_url(url: str) -> None:
    with pytest.raises(ValueError, match="advertise_url"):
        Gateway(advertise_url=url)


async def test_an_advertised_path_stays_before_ours() -> None:
    async with (
        Gateway(advertise_url="https://gateway.example/team/") as gateway,
        gateway.open("r1", "embedded/echo") as policy,
        gateway.open("r1", "embedded/echo", kind="judge") as judge,
    ):
        assert policy.url == "https://gateway.example/team/rollouts/r1/v1"
        assert judge.url == "https://gateway.example/team/rollouts/r1/judge/v1"
        assert gateway.find(f"{judge.url}/chat/completions") is judge
