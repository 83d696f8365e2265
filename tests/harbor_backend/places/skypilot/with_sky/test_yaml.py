"""The task files at the repository's root, in SkyPilot's own parser and schemas."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sky
import yaml
from sky import exceptions

ROOT = Path(__file__).parents[5]
FILES = ("skypilot.yaml", "skypilot.job.yaml", "skypilot.hosts.yaml")


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return content


def _task(config: dict[str, Any]) -> Any:
    given = [(name, "given") for name in config.get("secrets", {})]
    task = sky.Task.from_yaml_config(copy.deepcopy(config), secrets_overrides=given)
    task.validate(skip_workdir=True)
    return task


def _keys(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every path of keys, but not into names that a user chooses."""
    if not isinstance(node, dict) or path[:1] in {("envs",), ("secrets",), ("volumes",)}:
        return
    for key, value in node.items():
        yield (*path, key)
        yield from _keys(value, (*path, key))


FIELDS = [
    pytest.param(name, path, id=f"{name}-{'.'.join(path)}")
    for name in FILES
    for path in _keys(_read(name))
]


@pytest.mark.parametrize("name", FILES)
def test_it_is_a_task(name: str) -> None:
    config = _read(name)
    task = _task(config)
    assert task.name == config["name"]
    assert task.run == config["run"]
    assert set(task.secrets) == set(config.get("secrets", {}))
    assert task.volumes == config.get("volumes", {})


@pytest.mark.parametrize(("name", "path"), FIELDS)
def test_a_misspelt_field_is_refused(name: str, path: tuple[str, ...]) -> None:
    """So every field that is there is one that SkyPilot knows, in the place where it is."""
    config = _read(name)
    node = config
    for key in path[:-1]:
        node = node[key]
    node[f"{path[-1]}x"] = node.pop(path[-1])
    with pytest.raises((exceptions.InvalidSkyPilotConfigError, ValueError)):
        _task(config)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("where", [(), ("resources",), ("resources", "autostop")])
def test_an_unknown_field_is_refused(name: str, where: tuple[str, ...]) -> None:
    config = _read(name)
    node = config
    for key in where:
        node = node.setdefault(key, {})
    node["replicas_wanted"] = 3
    with pytest.raises((exceptions.InvalidSkyPilotConfigError, ValueError)):
        _task(config)


@pytest.mark.parametrize("name", FILES[:2])
def test_secrets_have_no_value_in_the_file(name: str) -> None:
    config = _read(name)
    assert all(value is None for value in config["secrets"].values())
    assert not set(config["secrets"]) & set(config["envs"])


def test_the_server_runs_on_kubernetes_stops_by_itself_and_keeps_its_store() -> None:
    task = _task(_read("skypilot.yaml"))
    (resources,) = task.resources
    assert str(resources.cloud) == "Kubernetes"
    assert resources.autostop_config.enabled
    assert resources.autostop_config.down
    assert task.volumes == {task.envs["DATA_DIR"]: "osmosis-store"}
    assert "/health" in task.run


@pytest.mark.parametrize("infra", ["aws", "gcp", "azure", "lambda", "slurm", "ssh"])
@pytest.mark.parametrize("name", FILES)
def test_any_other_place_by_override(name: str, infra: str) -> None:
    """Without the volume, which is Kubernetes' own; as the files' heads say."""
    config = _read(name)
    config.pop("volumes", None)
    config["resources"]["infra"] = infra
    (resources,) = _task(config).resources
    assert resources.cloud is not None
    assert str(resources.cloud).lower() == infra


def test_the_job_runs_the_trials_and_is_not_restarted_for_its_result() -> None:
    config = _read("skypilot.job.yaml")
    task = _task(config)
    (resources,) = task.resources
    assert resources.job_recovery["strategy"] == "EAGER_NEXT_REGION"
    assert not resources.job_recovery.get("max_restarts_on_errors")
    assert "osmosis trials run" in task.run
