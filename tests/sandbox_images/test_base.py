"""The base image in a real engine."""

import io
import subprocess
import sys
import uuid
from collections.abc import Iterator

import docker
import pytest

from sandbox_images import BASE_IMAGE, base_image_present, ensure_base_image
from sandbox_images.base import base_image_status, fetch_base_image

pytestmark = pytest.mark.docker

DOCKERFILE = """\
FROM python:3.12-slim
RUN pip --version && python --version && bash -c 'type curl'
RUN python -m venv /venv && /venv/bin/python -c 'import ssl, sqlite3, ctypes'
CMD ["python", "-c", "import os; print('hello from', os.uname().sysname)"]
"""


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


def test_it_is_there_and_found_again(client: docker.DockerClient) -> None:
    said: list[str] = []
    assert ensure_base_image(client, report=said.append) == BASE_IMAGE
    assert base_image_present(client)
    before = base_image_status(client).image_id
    assert fetch_base_image(client, said.append)
    assert base_image_status(client).image_id == before
    assert "there" in said[-1]


def test_an_ordinary_dockerfile_builds_on_it_unchanged(client: docker.DockerClient) -> None:
    tag = f"osmosis-test-base:{uuid.uuid4().hex[:12]}"
    client.images.build(fileobj=io.BytesIO(DOCKERFILE.encode()), tag=tag, rm=True)
    try:
        assert client.containers.run(tag, remove=True) == b"hello from Linux\n"
    finally:
        client.images.remove(tag, force=True)


def test_its_standard_library_starts_from_bytecode(client: docker.DockerClient) -> None:
    """Otherwise every start of every sandbox compiles what it imports."""
    if base_image_status(client).state == "official":
        pytest.skip("this engine has the official image, which ships without bytecode")
    probe = (
        "import asyncio, json, logging, os;"
        "print(all(os.path.exists(m.__cached__) for m in (asyncio, json, logging)))"
    )
    output = client.containers.run(BASE_IMAGE, ["python", "-c", probe], remove=True)
    assert output == b"True\n"


def test_the_command_line_tells_what_the_engine_has() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sandbox_images", "status"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith(f"{BASE_IMAGE}: ")


def test_an_engine_that_is_down_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    done = subprocess.run(
        [sys.executable, "-m", "sandbox_images", "status"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Docker engine does not answer" in done.stderr
