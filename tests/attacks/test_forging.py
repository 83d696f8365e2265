"""Agents that solve nothing, and tests that run where they worked."""

import asyncio
import shutil
from pathlib import Path

import _pytest
import pytest

from osmosis_ai.rollout import ExecutionOutcome
from sandbox_images import BASE_IMAGE
from tests.attacks.catalogue import Verdict, forgeries, script
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker

HONEST, IDLE = "honest", "idle"
SITE = Path("usr/local/lib/python3.12/site-packages")
PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
DOCKERFILE = f"FROM {BASE_IMAGE}\nCOPY site/ /{SITE}/\nWORKDIR /app\n"
CHECK = """\
import json, subprocess, sys
shown = subprocess.run(["cat", "/app/answer"], capture_output=True, text=True).stdout
sys.exit(0 if json.loads(shown or "0") == 42 else 1)
"""
PYTEST = "def test_it():\n    assert open('/app/answer').read().strip() == '42'\n"


def graded_by(command: str) -> str:
    return f"cd /app; if {command}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test runner, for an image that may not fetch it."""
    here, site = Path(_pytest.__file__).parents[1], tmp_path_factory.mktemp("site")
    leave = shutil.ignore_patterns("__pycache__")
    for name in PACKAGES:
        shutil.copytree(here / name, site / name, ignore=leave)
    for info in here.glob("pytest-[0-9]*.dist-info"):
        shutil.copytree(info, site / info.name)
    shutil.copy(here / "py.py", site)
    return site


def make_one(make_task: MakeTask, site: Path, name: str, solution: str) -> Path:
    """A task whose reference solution does this."""
    kind = (
        "python3 -m pytest -q /tests/test_it.py" if "pytest" in name else "python3 /tests/check.py"
    )
    task = make_task(name, dockerfile=DOCKERFILE, tests=graded_by(kind))
    (task / "tests" / "check.py").write_text(CHECK)
    (task / "tests" / "test_it.py").write_text(PYTEST)
    (task / "solution").mkdir()
    (task / "solution" / "solve.sh").write_text(f"#!/bin/sh\n{solution}")
    shutil.copytree(site, task / "environment" / "site")
    return task


RACE = "while :; do echo 1 > /logs/verifier/reward.txt; done"


async def test_who_is_not_root_writes_no_reward_beside_tests_that_are(
    make_backend: MakeBackend, make_task: MakeTask, site: Path
) -> None:
    """Not even from a process that it left, or into a folder that it made there before."""
    solution = f"setsid nohup sh -c '{RACE}' >/dev/null 2>&1 &\n"
    task = make_one(make_task, site, "race", solution)
    with (task / "task.toml").open("a") as toml:
        toml.write('[agent]\nuser = "nobody"\n')
    tested = "sleep 0.5; cat /logs/verifier/reward.txt || true; ls -ld /logs/verifier"
    (task / "tests" / "test.sh").write_text(f"#!/bin/sh\n{graded_by('false')}\n{tested}\n")
    outcome = await run(make_backend(agent="oracle", tasks_dir=task))
    assert outcome.result.sample is not None, outcome
    assert outcome.result.sample.reward == 0.0
    found = outcome.result.extra_fields["integrity"]
    assert found["status"] == "suspect"
    assert RACE in found["findings"][0]


def verdict(outcome: ExecutionOutcome) -> Verdict:
    """What came of it; what is marked may have lost a race, and is marked all the same."""
    if outcome.result.extra_fields["integrity"]["status"] == "suspect":
        return Verdict.MARKED
    sample = outcome.result.sample
    is_rewarded = outcome.result.is_scored and sample is not None and sample.reward == 1.0
    return Verdict.OPEN if is_rewarded else Verdict.CONTAINED


async def test_none_is_rewarded_without_a_mark(
    make_backend: MakeBackend, make_task: MakeTask, site: Path
) -> None:
    scripts = {attack.name: script(attack) for attack in forgeries()}
    scripts |= {HONEST: "echo 42 > /app/answer\n", IDLE: "true\n"}
    for name, solution in scripts.items():
        folder = make_one(make_task, site, name, solution).parent
    backend = make_backend(agent="oracle", tasks_dir=folder, task_mode="dataset")
    fields = {"agent_timeout_sec": 60, "grader_timeout_sec": 60}
    outcomes = await asyncio.gather(
        *(run(backend, name, metadata={"harbor_task_id": name}, **fields) for name in scripts)
    )
    ended = dict(zip(scripts, outcomes, strict=True))
    honest, idle = ended.pop(HONEST), ended.pop(IDLE)
    assert honest.result.sample is not None
    assert honest.result.sample.reward == 1.0, honest
    assert honest.result.extra_fields["integrity"]["status"] == "clean", honest
    assert idle.result.sample is not None
    assert idle.result.sample.reward == 0.0, idle
    found = {name: verdict(outcome) for name, outcome in ended.items()}
    expected = {attack.name: attack.verdicts["shared"] for attack in forgeries()}
    wrong = [name for name in found if found[name] is not expected[name]]
    told = (f"{n}: {found[n]}, {ended[n].result.extra_fields['integrity']}" for n in wrong)
    assert not wrong, "\n".join(told)
