"""``osmosis sandboxes`` on containers of known owners."""

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import docker.errors
import pytest

from harbor_backend.places import labels
from harbor_backend.places.instance import instance_id
from sandbox_images import BASE_IMAGE

from .conftest import ROOT, Osmosis

pytestmark = pytest.mark.docker

type Make = Callable[..., Any]


@pytest.fixture
def make(docker_engine: Any) -> Iterator[Make]:
    """Starts a container of an owner, and removes it afterwards."""
    made = []

    def container(instance: str, prefix: str = labels.PREFIX) -> Any:
        name = f"{prefix}-cli-{uuid.uuid4().hex[:10]}"
        marks = {
            labels.SANDBOX: "docker",
            labels.INSTANCE: instance,
            labels.ROLLOUT: f"[red]{name}",
        }
        made.append(
            docker_engine.containers.run(
                BASE_IMAGE, ["sleep", "600"], name=name, labels=marks, network_mode="none",
                init=True, detach=True,
            )
        )  # fmt: skip
        return made[-1]

    yield container
    for one in made:
        try:
            one.remove(force=True)
        except docker.errors.NotFound:
            continue


@pytest.fixture(scope="module")
def dead() -> str:
    code = "from harbor_backend.places.instance import instance_id; print(instance_id())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def names(engine: Any) -> set[str]:
    return {c.name for c in engine.containers.list(all=True, ignore_removed=True)}


def test_ls_in_json(osmosis: Osmosis, make: Make, dead: str) -> None:
    mine, kept = make(instance_id()), make(dead, labels.KEPT_PREFIX)
    listed = {sandbox["name"]: sandbox for sandbox in osmosis("sandboxes", "ls", "--json").json}
    first = listed[mine.name]
    assert (first["owner"], first["kept"], first["stale"]) == ("alive", False, False)
    assert (first["kind"], first["state"]) == ("docker", "running")
    assert first["rollout_id"] == f"[red]{mine.name}"
    assert first["container"] == mine.id
    assert 0 <= first["age_sec"] < 120
    assert (listed[kept.name]["owner"], listed[kept.name]["kept"]) == ("dead", True)


def test_ls_as_a_table(osmosis: Osmosis, make: Make) -> None:
    container = make(instance_id())
    done = osmosis("sandboxes", "ls")
    assert done.code == 0
    header, *rows = done.out.splitlines()
    assert header.split() == ["NAME", "KIND", "STATE", "AGE", "OWNER", "KEPT", "ROLLOUT"]
    (row,) = [row for row in rows if row.startswith(container.name)]
    assert row.split()[-1] == f"[red]{container.name}"


def test_rm_stale_takes_what_a_dead_engine_left(
    osmosis: Osmosis, docker_engine: Any, make: Make, dead: str
) -> None:
    stale, kept, alive = make(dead), make(dead, labels.KEPT_PREFIX), make(instance_id())
    done = osmosis("sandboxes", "rm", "--stale")
    assert done.code == 0
    assert f"removed {stale.name}\n" in done.out
    assert names(docker_engine) & {stale.name, kept.name, alive.name} == {kept.name, alive.name}


def test_rm_by_name(osmosis: Osmosis, docker_engine: Any, make: Make, dead: str) -> None:
    one, other = make(dead, labels.KEPT_PREFIX), make(dead, labels.KEPT_PREFIX)
    done = osmosis("sandboxes", "rm", one.name, "--json")
    assert [sandbox["name"] for sandbox in done.json] == [one.name]
    assert names(docker_engine) & {one.name, other.name} == {other.name}


def test_what_a_living_engine_may_use_needs_a_yes(
    osmosis: Osmosis, docker_engine: Any, make: Make
) -> None:
    container = make(instance_id())
    refused = osmosis("sandboxes", "rm", container.name)
    assert (refused.code, refused.out) == (2, "")
    assert "--yes" in refused.err
    assert container.name in names(docker_engine)
    assert osmosis("sandboxes", "rm", container.name, "--yes").code == 0
    assert container.name not in names(docker_engine)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "exactly one of them"),
        (("--stale", "--all"), "exactly one of them"),
        (("no-such-sandbox",), "no-such-sandbox is no sandbox"),
    ],
)
def test_rm_refuses(osmosis: Osmosis, arguments: tuple[str, ...], text: str) -> None:
    done = osmosis("sandboxes", "rm", *arguments)
    assert (done.code, done.out) == (2, "")
    assert text in done.err
