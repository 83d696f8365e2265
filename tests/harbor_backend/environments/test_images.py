"""Images are made once, and a failure says what the build said."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import SandboxBuildFailedError

from harbor_backend import labels
from harbor_backend.environments.engine import Engine
from harbor_backend.environments.images import ensure_image, forget_image
from sandbox_images import BASE_IMAGE

pytestmark = pytest.mark.docker

type Definition = Callable[..., Path]


@pytest.fixture
async def client(anyio_backend: str, engine: Any) -> AsyncIterator[Engine]:
    """An engine client that remembers nothing of other tests."""
    client = Engine()
    yield client
    await client.aclose()


@pytest.fixture
def unique(engine: Any) -> Iterator[str]:
    """A line that makes a Dockerfile's content new; its images are removed afterwards."""
    mark = uuid.uuid4().hex
    yield f"LABEL test={mark}\n"
    for image in engine.images.list(filters={"label": f"test={mark}"}):
        engine.images.remove(image.id, force=True)


async def test_concurrent_requests_build_once(
    client: Engine, engine: Any, definition: Definition, unique: str
) -> None:
    directory = definition(
        f"FROM {BASE_IMAGE}\n{unique}RUN cat /proc/sys/kernel/random/uuid > /id\n"
    )
    other = Engine()
    images = await asyncio.gather(
        *(ensure_image(client, directory, None) for _ in range(4)),
        *(ensure_image(other, directory, None) for _ in range(2)),
    )
    await other.aclose()
    assert len(set(images)) == 1
    mark = unique.partition("=")[2].strip()
    built = engine.images.list(all=True, filters={"label": f"test={mark}"})
    assert len([image for image in built if image.tags]) == 1
    assert images[0].reference.startswith(f"{labels.PREFIX}-env:")


async def test_content_decides(client: Engine, definition: Definition, unique: str) -> None:
    text = f"FROM {BASE_IMAGE}\n{unique}COPY data__txt /data\n".replace("__", ".")
    one, same, other = (definition(text, data__txt=data) for data in ("a", "a", "b"))
    images = [await ensure_image(client, directory, None) for directory in (one, same, other)]
    assert images[0] == images[1]
    assert images[0] != images[2]


async def test_force_build_builds_again(
    client: Engine, engine: Any, definition: Definition, unique: str
) -> None:
    directory = definition(f"FROM {BASE_IMAGE}\n{unique}")
    first = await ensure_image(client, directory, None)
    engine.images.remove(first.reference, force=True)
    again = await ensure_image(client, directory, None, force_build=True)
    assert engine.images.get(again.reference).tags == [first.reference]


async def test_a_build_that_fails_says_why(
    client: Engine, definition: Definition, unique: str
) -> None:
    directory = definition(
        f"FROM {BASE_IMAGE}\n{unique}RUN seq 1 60 && echo the-reason >&2 && exit 42\n"
    )
    with pytest.raises(SandboxBuildFailedError) as caught:
        await ensure_image(client, directory, None)
    text = str(caught.value)
    assert str(directory / "Dockerfile") in text
    assert "the-reason" in text
    assert "42" in text
    assert "\n3\n" not in text


@pytest.mark.parametrize(
    "dockerfile",
    ["", "FRUM x\n", "FROM no-such-image-anywhere:1\n", f"FROM {BASE_IMAGE}\nCOPY no-such /\n"],
)
async def test_a_dockerfile_that_is_wrong(
    client: Engine, definition: Definition, dockerfile: str
) -> None:
    with pytest.raises(SandboxBuildFailedError, match="does not build"):
        await ensure_image(client, definition(dockerfile), None)


async def test_a_failed_build_can_be_repaired(
    client: Engine, definition: Definition, unique: str
) -> None:
    directory = definition(f"FROM {BASE_IMAGE}\n{unique}RUN false\n")
    with pytest.raises(SandboxBuildFailedError):
        await ensure_image(client, directory, None)
    (directory / "Dockerfile").write_text(f"FROM {BASE_IMAGE}\n{unique}RUN true\n")
    assert (await ensure_image(client, directory, None)).reference


async def test_no_dockerfile_and_no_image(client: Engine, tmp_path: Path) -> None:
    with pytest.raises(SandboxBuildFailedError, match=r"no Dockerfile.*docker_image"):
        await ensure_image(client, tmp_path, None)


async def test_a_prebuilt_image_that_is_not_here(client: Engine, tmp_path: Path) -> None:
    with pytest.raises(SandboxBuildFailedError, match="cannot be pulled"):
        await ensure_image(client, tmp_path, "127.0.0.1:1/no/such:image")


@pytest.mark.parametrize(
    ("line", "engine_version"),
    [
        ("RUN --mount=type=cache,target=/c echo x > /made", 19),
        ("RUN <<END\necho x > /made\nEND", 23),
        ("COPY --link Dockerfile /made", 23),
    ],
    ids=["mount", "here-document", "link"],
)
async def test_buildkit_syntax(
    client: Engine,
    engine: Any,
    definition: Definition,
    unique: str,
    line: str,
    engine_version: int,
) -> None:
    directory = definition(f"FROM {BASE_IMAGE}\n{unique}{line}\n")
    if int(engine.version()["Version"].partition(".")[0]) < engine_version:
        with pytest.raises(SandboxBuildFailedError, match=r"(?i)parse error line \d"):
            await ensure_image(client, directory, None)
        return
    image = await ensure_image(client, directory, None)
    assert engine.images.get(image.reference).labels[labels.IMAGE] == "environment"
    assert engine.containers.run(
        image.reference, ["cat", "/made"], remove=True, network_mode="none"
    ).strip()


async def test_user_and_entry_point_are_known(
    client: Engine, definition: Definition, unique: str
) -> None:
    directory = definition(f'FROM {BASE_IMAGE}\n{unique}USER 7:8\nENTRYPOINT ["a", "b"]\n')
    image = await ensure_image(client, directory, None)
    assert (image.user, image.entrypoint) == ("7:8", ("a", "b"))
    forget_image(client, image)
    assert await ensure_image(client, directory, None) == image


async def test_a_dockerignore_is_honoured(
    client: Engine, engine: Any, definition: Definition, unique: str
) -> None:
    directory = definition(f"FROM {BASE_IMAGE}\n{unique}COPY . /all/\n", secret__txt="x", kept="y")
    (directory / ".dockerignore").write_text("secret.txt\n")
    image = await ensure_image(client, directory, None)
    listed = engine.containers.run(image.reference, ["ls", "/all"], remove=True)
    assert b"kept" in listed
    assert b"secret" not in listed
