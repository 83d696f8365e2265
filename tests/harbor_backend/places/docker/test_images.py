"""Images are made once, and a failure says what the build said."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import SandboxBuildFailedError

from harbor_backend.places import labels
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.images import ensure_image, forget_image, image_key
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


@pytest.fixture
def base(
    engine: Any, definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], str]]:
    """Builds a base image under one name, with this text in it; returns the name."""
    monkeypatch.setattr("harbor_backend.places.docker.images._FRESH_SEC", -1)
    name = f"osmosis-test-base-{uuid.uuid4().hex[:8]}:1"

    def build(text: str) -> str:
        directory = definition(f"FROM {BASE_IMAGE}\nRUN echo {text} > /base\n")
        engine.images.build(path=str(directory), tag=name, rm=True)
        return name

    yield build
    engine.images.remove(name, force=True)


USES = {
    "started from": "FROM {base}\n",
    "of an earlier stage": "FROM {base} AS one\nFROM one\n",
    "by an argument": "ARG B={base}\nFROM $B\n",
    "copied from": f"FROM {BASE_IMAGE}\nCOPY --from={{base}} /base /base\n",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_a_base_image_that_was_built_anew_is_noticed(
    client: Engine,
    engine: Any,
    definition: Definition,
    unique: str,
    base: Callable[[str], str],
    use: str,
) -> None:
    directory = definition(f"{use.format(base=base('one'))}{unique}")
    first = await ensure_image(client, directory, None)
    assert await ensure_image(client, directory, None) == first
    base("two")
    second = await ensure_image(client, directory, None)
    assert second != first
    assert seen(engine, second.reference) == b"two\n"
    base("one")
    assert await ensure_image(client, directory, None) == first


def seen(engine: Any, reference: str) -> bytes:
    found: bytes = engine.containers.run(
        reference, ["cat", "/base"], remove=True, network_mode="none"
    )
    return found


async def test_what_a_content_hash_leaves_out_is_noticed(
    client: Engine, definition: Definition
) -> None:
    directory = definition(f"FROM {BASE_IMAGE}\n", run__sh="x")
    keys = [await image_key(client, directory)]
    (directory / "run.sh").chmod(0o755)
    keys.append(await image_key(client, directory))
    (directory / "link").symlink_to("run.sh")
    keys.append(await image_key(client, directory))
    (directory / "link").unlink()
    (directory / "link").symlink_to("Dockerfile")
    keys.append(await image_key(client, directory))
    (directory / "empty").mkdir()
    keys.append(await image_key(client, directory))
    assert len(set(keys)) == len(keys)
    (directory / ".git").mkdir()
    (directory / ".git/HEAD").touch()
    assert await image_key(client, directory) == keys[-1]


async def test_only_bases_that_no_registry_has_count_where_machines_share_one(
    client: Engine, definition: Definition, base: Callable[[str], str]
) -> None:
    directory = definition(f"FROM {base('one')}\n")
    own = await image_key(client, directory, own_bases=True)
    base("two")
    assert await image_key(client, directory, own_bases=True) != own
    nobody = Engine("unix:///nonexistent/docker.sock")
    assert await image_key(nobody, directory, own_bases=True)
    with pytest.raises(EngineError, match="does not answer"):
        await image_key(nobody, directory)
    await nobody.aclose()


async def test_a_prebuilt_image_that_got_a_new_content_is_known_by_it(
    client: Engine, engine: Any, definition: Definition, base: Callable[[str], str]
) -> None:
    name = base("one")
    assert (await ensure_image(client, definition(), name)).is_passive
    again = definition(f'FROM {name}\nENTRYPOINT ["/serve"]\n')
    engine.images.build(path=str(again), tag=name, rm=True)
    assert (await ensure_image(client, definition(), name)).entrypoint == ("/serve",)


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


async def test_force_build_builds_what_a_task_names_an_image_for_once(
    client: Engine, engine: Any, definition: Definition, unique: str
) -> None:
    directory = definition(f"FROM {BASE_IMAGE}\n{unique}")
    assert (await ensure_image(client, directory, BASE_IMAGE)).reference == BASE_IMAGE
    built = await ensure_image(client, directory, BASE_IMAGE, force_build=True)
    assert built.reference.startswith("osmosis-env:")
    other = definition(f"FROM {BASE_IMAGE}\n{unique}LABEL other=1\n")
    engine.images.build(path=str(other), tag=built.reference, rm=True)
    replaced = engine.images.get(built.reference).id
    await ensure_image(client, directory, None, force_build=True)
    assert engine.images.get(built.reference).id == replaced, "once in a process is enough"
    elsewhere = Engine()
    await ensure_image(elsewhere, directory, None, force_build=True)
    assert engine.images.get(built.reference).id != replaced
    await elsewhere.aclose()


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


FEATURES: dict[str, tuple[str, int]] = {
    # the lines of a Dockerfile that make /made, and the engine that can
    "mount": ("RUN --mount=type=cache,target=/c echo x > /made", 19),
    "mount on a continued line": (
        "RUN \\\n  --mount=type=bind,source=data.txt,target=/d \\\n  cp /d /made", 19,
    ),
    "chmod": ("COPY --chmod=711 data.txt /made\nRUN [ $(stat -c %a /made) = 711 ]", 20),
    "target platform": ("ARG TARGETARCH\nRUN [ -n \"$TARGETARCH\" ] && echo x > /made", 19),
    "a stage that nobody uses": (
        f"FROM {BASE_IMAGE} AS unused\nRUN exit 7\nFROM {BASE_IMAGE}\nRUN echo x > /made", 19,
    ),
    "platform": (
        f"FROM --platform=$BUILDPLATFORM {BASE_IMAGE}\nRUN echo x > /made", 19,
    ),
    "an ignore file of the Dockerfile": (
        "COPY . /all/\nRUN [ ! -e /all/data.txt ] && echo x > /made", 19,
    ),
    "here-document": ("RUN <<END\necho x > /made\nEND", 23),
    "link": ("COPY --link Dockerfile /made", 23),
}  # fmt: skip


@pytest.mark.parametrize("feature", FEATURES)
async def test_what_buildkit_knows_is_built(
    client: Engine, engine: Any, definition: Definition, unique: str, feature: str
) -> None:
    lines, engine_version = FEATURES[feature]
    directory = definition(f"FROM {BASE_IMAGE}\n{lines}\n{unique}", data__txt="x")
    if "ignore" in feature:
        (directory / "Dockerfile.dockerignore").write_text("data.txt\n")
    if int(engine.version()["Version"].partition(".")[0]) < engine_version:
        with pytest.raises(SandboxBuildFailedError, match=r"(?i)parse error line \d"):
            await ensure_image(client, directory, None)
        return
    image = await ensure_image(client, directory, None)
    assert engine.images.get(image.reference).labels[labels.IMAGE] == "environment"
    made = engine.containers.run(
        # An engine may lose a line without an end of a container that ends at once.
        image.reference,
        ["sh", "-c", "cat /made; echo"],
        remove=True,
        network_mode="none",
    )
    assert made.strip()


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
