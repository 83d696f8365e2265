"""What is layered over the compose files of a task."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from harbor.models.task.config import TaskConfig

from harbor_backend.core.spec import StagedTask
from harbor_backend.places import labels
from harbor_backend.places.harbor import compose
from harbor_backend.places.harbor.compose import (
    has_own_network,
    has_services,
    make_overlay,
    read_services,
)
from harbor_backend.places.instance import instance_id

SEPARATE = "[verifier]\nenvironment_mode = 'separate'\n"
STEPS = "[[steps]]\nname = 'one'\n[[steps]]\nname = 'two'\n"


def staged(folder: Path) -> StagedTask:
    """A task and its copy, which has the directory ``data``."""
    (folder / "copy" / "data").mkdir(parents=True)
    return StagedTask(folder / "copy", TaskConfig(), True, folder / "task")


def overlaid(services: dict[str, Any], task: StagedTask, rollout_id: str = "r-1") -> Any:
    text = make_overlay(services, task, rollout_id)
    assert yaml.safe_load(text) == json.loads(text)
    return json.loads(text)["services"]


@pytest.mark.parametrize("services", [{}, {"main": {}}, {"db": {}, "main": None, "1": []}])
def test_every_service_is_ours_and_is_not_waited_for(
    services: dict[str, Any], tmp_path: Path
) -> None:
    marks = {labels.SANDBOX: "compose", labels.INSTANCE: instance_id(), labels.ROLLOUT: "r-1"}
    expected = {"stop_grace_period": "0s", "labels": marks}
    assert overlaid(services, staged(tmp_path)) == dict.fromkeys(services, expected)


@pytest.mark.parametrize(
    ("rollout_id", "written"),
    [("a $$ ${HOME} '\"", "a $$$$ $${HOME} '\""), ("ünï-日本", "ünï-日本"), ("{a: &b}", "{a: &b}")],
)
def test_compose_reads_any_rollout_id_as_it_is(
    rollout_id: str, written: str, tmp_path: Path
) -> None:
    """A dollar would begin a variable, and is doubled."""
    service = overlaid({"main": {}}, staged(tmp_path), rollout_id)["main"]
    assert service["labels"][labels.ROLLOUT] == written


MOUNTS: dict[str, tuple[dict[str, Any], str | None]] = {
    # A mount of the service; what is mounted in its place.
    "a directory of the task": ({"source": "task/data"}, "copy/data"),
    "one that is not there yet": ({"source": "task/out"}, "copy/out"),
    "one that is only read": ({"source": "task/data", "read_only": True}, None),
    "one outside of the task": ({"source": "elsewhere"}, None),
    "one whose name begins like the task's": ({"source": "task-2/data"}, None),
    "a link of the copy that leaves it": ({"source": "task/away"}, None),
    "a volume": ({"type": "volume", "source": "task/data"}, None),
    "a dollar in its name": ({"source": "task/a$$b"}, "copy/a$$b"),
}


@pytest.mark.parametrize("case", MOUNTS)
def test_trials_write_to_copies_of_their_own(case: str, tmp_path: Path) -> None:
    given, expected = MOUNTS[case]
    task = staged(tmp_path)
    (task.path / "away").symlink_to("/")
    mount = {"type": "bind", "target": "/d", **given, "source": str(tmp_path / given["source"])}
    made = overlaid({"main": {"volumes": [mount]}}, task)["main"].get("volumes")
    assert made == (None if expected is None else [{**mount, "source": str(tmp_path / expected)}])


@pytest.mark.parametrize(
    ("service", "own"),
    [
        ({}, False),
        ({"networks": {"default": None}}, False),
        ({"networks": {"default": {"aliases": ["x"]}}}, True),
        ({"networks": {"inner": None}}, True),
        ({"networks": {"default": None, "inner": None}}, True),
        ({"network_mode": "host"}, True),
    ],
)
def test_whether_a_service_says_where_it_is(service: dict[str, Any], own: bool) -> None:
    assert has_own_network(service) is own


@pytest.mark.parametrize(
    ("toml", "where", "expected"),
    [
        ("", "environment", True),
        ("", "tests", False),
        (SEPARATE, "tests", True),
        (SEPARATE, "solution", False),
        (STEPS + SEPARATE, "steps/two/tests", True),
        (STEPS, "steps/two/tests", False),
    ],
)
def test_where_a_task_may_have_services(
    toml: str, where: str, expected: bool, tmp_path: Path
) -> None:
    (tmp_path / where).mkdir(parents=True)
    task = TaskConfig.model_validate_toml(toml)
    assert not has_services(task, tmp_path)
    (tmp_path / where / "docker-compose.yaml").write_text("services: {main: {}}")
    assert has_services(task, tmp_path) is expected


def test_services_are_read_as_compose_writes_them(tmp_path: Path) -> None:
    document = tmp_path / "config.json"
    document.write_text('{"name": "x", "services": {"main": {"image": "x"}}}')
    assert read_services(document) == {"main": {"image": "x"}}
    document.write_text("{}")
    assert read_services(document) == {}


@pytest.mark.parametrize("text", ["{", "[]", "1" * 100])
def test_what_no_project_is_like_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "_MAX_BYTES", 50)
    document = tmp_path / "config.json"
    document.write_text(text)
    with pytest.raises(ValueError, match=r"."):
        read_services(document)
