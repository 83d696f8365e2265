"""What a SkyPilot sandbox cannot do, told before one is created."""

from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import TaskConfig

from harbor_backend.places.skypilot.settings import SkypilotSettings
from harbor_backend.places.skypilot.task_checks import Demand, check_task_fits, left_to_platform

NOTHING = Demand(None, None, agent_calls_model=False, grader_calls_judge=False)
MODEL = Demand(None, None, agent_calls_model=True, grader_calls_judge=False)
JUDGE = Demand(None, None, agent_calls_model=False, grader_calls_judge=True)
IMAGE = '[environment]\ndocker_image = "python:3.12"\n'


def check(
    toml: str, folder: Path, demand: Demand = NOTHING, compose: bool = False, **kwargs: Any
) -> None:
    if compose:
        (folder / "docker-compose.yaml").write_text("services: {main: {}}\n")
    config = TaskConfig.model_validate_toml(f'schema_version = "1.4"\n{toml}')
    check_task_fits("made", config, folder, SkypilotSettings.of(kwargs), demand)


@pytest.mark.parametrize(
    ("toml", "kwargs", "demand"),
    [
        (IMAGE, {}, NOTHING),
        (f'{IMAGE}network_mode = "no-network"\n', {}, NOTHING),
        (f'{IMAGE}network_mode = "public"\n', {}, MODEL),
        ("", {"pool": "warm"}, MODEL),
        (IMAGE, {}, Demand(3600, 3600, agent_calls_model=False, grader_calls_judge=False)),
    ],
)
def test_what_fits_passes(toml: str, kwargs: Any, demand: Demand, tmp_path: Path) -> None:
    check(toml, tmp_path, demand, **kwargs)


@pytest.mark.parametrize(
    ("toml", "kwargs", "demand", "said"),
    [
        ("", {}, NOTHING, "Set one of: kwargs={'pool': …}"),
        ("", {"registry": "ghcr.io/x"}, NOTHING, "neither a Dockerfile"),
        (f"{IMAGE}gpus = 1\n", {}, NOTHING, "accelerator"),
        (
            f'{IMAGE}network_mode = "allowlist"\nallowed_hosts = ["a.org"]\n',
            {},
            NOTHING,
            "allowlist",
        ),
        (f'{IMAGE}network_mode = "no-network"\n', {}, MODEL, "its agent calls a model"),
        (f'{IMAGE}network_mode = "no-network"\n', {}, JUDGE, "its grader calls a model"),
        (f'{IMAGE}network_mode = "no-network"\n', {"pool": "warm"}, NOTHING, "pool"),
        (
            f'{IMAGE}network_mode = "public"\n[agent]\nnetwork_mode = "no-network"\n',
            {},
            NOTHING,
            "changes its network between phases",
        ),
        (
            IMAGE,
            {},
            Demand(3601, None, agent_calls_model=False, grader_calls_judge=False),
            "The agent's deadline of task made is 3601s",
        ),
        (
            IMAGE,
            {},
            Demand(None, 7200, agent_calls_model=False, grader_calls_judge=False),
            "The grader's deadline of task made is 7200s",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_remedy(
    toml: str, kwargs: Any, demand: Demand, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="made") as caught:
        check(toml, tmp_path, demand, **kwargs)
    assert said in str(caught.value)


def test_a_task_with_services_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="several services"):
        check(IMAGE, tmp_path, compose=True)


@pytest.mark.parametrize(
    ("dockerfile", "said"),
    [
        ('FROM x\nENTRYPOINT ["/serve"]\n', "has ENTRYPOINT,"),
        ("FROM x\nHEALTHCHECK --interval=1s CMD true\n  entrypoint /serve\n", "HEALTHCHECK"),
        ('FROM x\nENTRYPOINT []\nHEALTHCHECK NONE\nCMD ["ENTRYPOINT x"]\n', None),
    ],
)
def test_what_only_an_engine_does_is_told(
    dockerfile: str, said: str | None, tmp_path: Path
) -> None:
    assert left_to_platform(tmp_path) is None
    (tmp_path / "Dockerfile").write_text(dockerfile)
    note = left_to_platform(tmp_path)
    assert note is None if said is None else said in str(note)
