"""The gateway over a rollout's own socket."""

import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import anyio
import httpx
import pytest
from openai import AsyncOpenAI

from osmosis_ai.gateway import Gateway
from tests.gateway.clients import PRODUCT, chat
from tests.gateway.model_server import KEY, ModelServer


@pytest.fixture
def directory() -> Iterator[Path]:
    # pytest's own directories can be too long for a socket's path.
    with TemporaryDirectory(prefix="gw") as name:
        yield Path(name)


def over(path: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(path)), timeout=10)


async def test_the_openai_client_needs_no_real_token(gateway: Gateway, directory: Path) -> None:
    path = directory / "model.sock"
    async with gateway.open("r1", "embedded/multiply") as endpoint, endpoint.listen_unix(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666
        async with AsyncOpenAI(
            base_url="http://model/v1", api_key="placeholder", http_client=cast("Any", over(path))
        ) as client:
            async with client.chat.completions.stream(
                model="m", messages=[{"role": "user", "content": "3 x 5"}]
            ) as stream:
                answer = await stream.get_final_completion()
            models = await client.models.list()
        assert endpoint.summary().calls == 1
    assert (answer.choices[0].message.content or "").endswith("#### 15")
    assert models.data[0].id == "embedded/multiply"
    assert not path.exists()


async def test_each_socket_is_one_rollout(gateway: Gateway, directory: Path) -> None:
    paths = [directory / "1.sock", directory / "2.sock"]
    async with (
        gateway.open("r1", "embedded/echo") as one,
        gateway.open("r2", "embedded/echo") as two,
        one.listen_unix(paths[0]),
        two.listen_unix(paths[1]),
    ):
        for path, count in zip(paths, (1, 3), strict=True):
            async with over(path) as client:
                for _ in range(count):
                    url = "http://x/v1/chat/completions"
                    answer = await client.post(url, json={"messages": PRODUCT})
                    assert answer.status_code == 200
        assert (one.summary().calls, two.summary().calls) == (1, 3)


async def test_no_other_rollout_can_be_named_on_a_socket(gateway: Gateway, directory: Path) -> None:
    path = directory / "model.sock"
    async with (
        gateway.open("r1", "embedded/echo") as one,
        gateway.open("r2", "embedded/echo") as two,
        one.listen_unix(path),
        over(path) as client,
    ):
        answer = await client.post(
            "http://x/rollouts/r2/v1/chat/completions",
            json={"messages": PRODUCT},
            headers={"Authorization": f"Bearer {two.token}"},
        )
        assert two.calls == []
    assert answer.status_code == 404


async def test_a_connection_does_not_outlive_its_socket(gateway: Gateway, directory: Path) -> None:
    path = directory / "model.sock"
    with socket.socket(socket.AF_UNIX) as old:
        async with gateway.open("r1", "embedded/echo") as endpoint, endpoint.listen_unix(path):
            # Connected, and silent until the path belongs to the next rollout.
            old.connect(str(path))
            await anyio.sleep(0.05)
        async with gateway.open("r2", "embedded/echo") as endpoint, endpoint.listen_unix(path):
            old.settimeout(5)
            assert await anyio.to_thread.run_sync(old.recv, 1) == b""
            assert endpoint.calls == []


async def test_a_socket_closes_with_a_call_in_flight(
    gateway: Gateway, model: ModelServer, directory: Path
) -> None:
    path = directory / "model.sock"
    answers: list[httpx.Response] = []
    async with gateway.open("r1", model.url, KEY) as endpoint, anyio.create_task_group() as group:
        async with endpoint.listen_unix(path):

            async def ask() -> None:
                async with over(path) as client:
                    url = "http://x/v1/chat/completions"
                    answers.append(await client.post(url, json=chat("hangs")))

            group.start_soon(ask)
            await model.arrived.wait()
        assert endpoint.calls[0].status == 410
        with anyio.fail_after(5):
            await model.abandoned.wait()
    assert [answer.status_code for answer in answers] == [410]
    assert endpoint.summary().errors == 1


async def test_paths_that_cannot_be_sockets_are_refused(gateway: Gateway, directory: Path) -> None:
    (directory / "taken").write_text("something")
    (directory / "link").symlink_to(directory / "nowhere")
    cases = {
        directory / "taken": "exists already",
        directory / "link": "exists already",
        directory / "missing" / "s": "make its directory first",
        directory / ("long" * 30): "use a shorter directory",
    }
    async with gateway.open("r1", "embedded/echo") as endpoint:
        for path, complaint in cases.items():
            with pytest.raises(ValueError, match=complaint):
                async with endpoint.listen_unix(path):
                    pass
    assert (directory / "taken").read_text() == "something"
