"""A task's features mean in our containers what they mean in Harbor's own Docker environment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend import DOCKER
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.rollouts.conftest import MakeBackend, run

pytestmark = pytest.mark.docker

USER = "RUN useradd -m -u 1500 dev"
ENTRY = 'COPY --chmod=755 entry.sh /entry\nENTRYPOINT ["/entry"]'
VARIABLES = "env | grep -v -e ^HOSTNAME= -e ^_= | sort"


@dataclass(frozen=True)
class Feature:
    """A task of one feature.

    ``look`` prints the same to agent and tests on either environment; ``check`` is what the
    tests ask for, as a shell's condition, and ``graded`` writes its result. ``files`` and
    ``links`` lie in the task's directory.
    """

    lines: str = ""
    check: str = "true"
    look: str = "true"
    solve: str = "true"
    toml: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    graded: str = "echo $passed > /logs/verifier/reward.txt"
    reward: float | None = 1.0


def entry(script: str, **more: Any) -> Feature:
    """The image has this script as its entry point."""
    lines = "\n".join([USER, more.pop("lines", ""), ENTRY])
    return Feature(lines, files={"environment/entry.sh": f"#!/bin/bash\n{script}\n"}, **more)


FEATURES = {
    "user of the image": Feature(
        f"{USER} && chown dev /app\nUSER dev",
        look="id; pwd; echo $HOME; touch /app/x; stat -c '%u %a' /app/x",
        check="[ $(id -u) = 1500 ]",
    ),
    "user of the agent": Feature(
        USER,
        toml='[agent]\nuser = "dev"',
        look="id; echo $HOME",
        check="[ $(id -u) = 0 ] && [ $(stat -c %u /logs/artifacts/look.txt) = 1500 ]",
    ),
    "user of the tests": Feature(
        USER, toml='[verifier]\nuser = "dev"', look="id; echo $HOME", check="[ $(id -u) = 1500 ]"
    ),
    "working directory": Feature("WORKDIR /srv/a b", look="pwd", check='[ "$PWD" = "/srv/a b" ]'),
    "working directory of the task": Feature(
        "RUN mkdir /srv/b",
        toml='[environment]\nworkdir = "/srv/b"',
        look="pwd",
        check="[ $PWD = /srv/b ]",
    ),
    "variables": Feature(
        'ENV A="b c" EMPTY="" PATH=/opt/own:$PATH',
        toml='[environment.env]\nA = "of the task"\nB = "${NOT_SET_HERE:-default}"\n'
        '[verifier.env]\nC = "tests"\n[solution.env]\nD = "solution"',
        look=VARIABLES,
        check='[ "$A$B$C$D" = "of the taskdefaulttests" ]',
    ),
    "home": Feature(f"{USER}\nENV HOME=/srv\nUSER dev", look=VARIABLES, check="[ $HOME = /srv ]"),
    "health check of the image": entry(
        '(sleep 1; touch /up) & exec "$@"',
        lines="HEALTHCHECK --interval=200ms --start-period=20s --retries=5 CMD test -e /up",
        solve="test -e /up && touch /app/was-up",
        check="test -e /app/was-up",
    ),
    "health check that fails": Feature(
        "HEALTHCHECK --interval=100ms --retries=2 CMD echo no database; exit 7", reward=None
    ),
    "health check of the task": Feature(
        toml="[environment.healthcheck]\n"
        'command = "echo >> /checks; [ $(wc -l < /checks) -ge 2 ]"\n'
        "interval_sec = 0.2\nretries = 5",
        check="[ $(wc -l < /checks) = 2 ]",
    ),
    "entry point that ignores its arguments": entry(
        "echo up > /up; sleep 1000", solve="until test -s /up; do sleep 0.1; done", look="cat /up"
    ),
    "entry point that takes its time": entry('sleep 20; touch /late; exec "$@"'),
    "entry point that changes all it can": entry(
        "export LEFT=yes PATH=/usr/bin:/bin:/nowhere HOME=/elsewhere\n"
        "cd /tmp; umask 077; ulimit -n 100 -f 7\n"
        "trap '' HUP TERM PIPE\n"
        'exec /usr/bin/setpriv --reuid=1500 --regid=1500 --clear-groups "$@"',
        look=f"{VARIABLES}; id; pwd; umask; ulimit -a; grep '^Sig[BIC]' /proc/self/status",
        check='[ -z "$LEFT" ] && [ $PWD = /app ]',
    ),
    "entry point of the image's user": entry(
        'id -u > /tmp/seen; echo "$@" >> /tmp/seen; exec "$@"',
        lines="USER dev",
        look="until test -s /tmp/seen; do sleep 0.1; done; cat /tmp/seen",
    ),
    "entry point that fails": entry("echo no; exit 3", reward=None),
    "command of the image": Feature('CMD ["touch", "/ran"]', check="! test -e /ran"),
    "what only BuildKit builds": Feature(
        "RUN \\\n  --mount=type=bind,source=a.txt,target=/in \\\n  cp /in /one\n"
        "COPY --chmod=711 a.txt /two\nARG TARGETARCH\nRUN echo $TARGETARCH > /three",
        look="cat /one /three; stat -c %a /two",
        check='test -s /one && [ $(stat -c %a /two) = 711 ] && [ -n "$(cat /three)" ]',
        files={"environment/a.txt": "x\n"},
    ),
    "ignore file": Feature(
        "COPY . /all",
        look="ls -A /all",
        check="test -e /all/b.txt && ! test -e /all/a.txt",
        files={
            "environment/.dockerignore": "a.*\n",
            "environment/a.txt": "",
            "environment/b.txt": "",
        },
    ),
    "ignore file of the Dockerfile": Feature(
        "COPY . /all",
        look="ls -A /all",
        check="test -e /all/a.txt && ! test -e /all/b.txt",
        files={
            "environment/.dockerignore": "a.*\n",
            "environment/Dockerfile.dockerignore": "b.*\n",
            "environment/a.txt": "",
            "environment/b.txt": "",
        },
    ),
    "line ends": Feature(
        "COPY a.txt /a\r\nRUN echo x \\\r\n  > /b\r",
        look="od -c /a; od -c /b; ls -A /app /",
        check="grep -q $'\\r' /a",
        files={"environment/a.txt": "1\r\n2\r\n", "instruction.md": "Do it.\r\nNow.\r\n"},
    ),
    "names": Feature(
        "COPY . /all",
        look="find /all /tests /solution -type f 2>/dev/null | sort",
        solve="touch /logs/artifacts/'a b' /logs/artifacts/-rf /logs/artifacts/ü.txt",
        check="test -e '/all/a b/c d' && test -e '/tests/of the/tést'",
        files={
            "environment/a b/c d": "x",
            "environment/-n": "x",
            "environment/日本": "x",
            "tests/of the/tést": "x",
            "solution/'quoted' $HOME": "x",
        },
    ),
    "links": Feature(
        "COPY . /all",
        solve="cat /solution/to-data > /app/said",
        look="readlink /all/to-file /all/to-nothing; cat /all/to-directory/deep.txt",
        check="[ -L /tests/to-data ] && diff /tests/data.txt /tests/to-data && test -s /app/said",
        files={
            "environment/one.txt": "1\n",
            "environment/sub/deep.txt": "2\n",
            "tests/data.txt": "3\n",
            "solution/data.txt": "4\n",
        },
        links={
            "environment/to-file": "one.txt",
            "environment/to-directory": "sub",
            "environment/to-nothing": "missing",
            "tests/to-data": "data.txt",
            "solution/to-data": "data.txt",
        },
    ),
    "artifacts": Feature(
        toml='artifacts = ["/app/out", "/app/one.txt", '
        '{source = "/app/other", destination = "renamed"}]',
        solve="mkdir -p out/d other && echo 1 > out/d/a && echo 2 > one.txt && echo 3 > other/b",
    ),
    "steps": Feature(
        toml='multi_step_reward_strategy = "mean"\n'
        '[[steps]]\nname = "one"\n[[steps]]\nname = "two"',
        look="ls /app",
        check="test -e /app/one",
        files={
            "steps/one/instruction.md": "Do it.\n",
            "steps/one/solution/solve.sh": "ls /app > /logs/artifacts/look.txt; touch /app/one\n",
            "steps/two/instruction.md": "Do it.\n",
            "steps/two/solution/solve.sh": "ls /app > /logs/artifacts/look.txt; rm /app/one\n",
        },
        reward=0.5,
    ),
    "separate verifier": Feature(
        toml='artifacts = ["/app/out"]\n[verifier]\nenvironment_mode = "separate"',
        solve="mkdir out; echo 1 > out/a; touch /not-there",
        look="ls -A /app /app/out /tests",
        check="test -e /app/out/a && ! test -e /not-there",
        files={"tests/Dockerfile": f"FROM {BASE_IMAGE}\nWORKDIR /app\nCOPY . /tests\n"},
    ),
    "separate verifier in the task's image": Feature(
        toml='artifacts = ["/app/answer"]\n'
        '[verifier]\nenvironment_mode = "separate"\n[verifier.env]\nEXPECTED = "42"',
        solve="echo 42 > answer; touch left",
        check='[ "$(cat /app/answer)" = "$EXPECTED" ] && ! test -e /app/left',
    ),
    "tests that end with an error after their reward": Feature(
        graded="echo $passed > /logs/verifier/reward.txt; exit 3"
    ),
    "a reward of another name": Feature(
        graded='echo "{\\"score\\": 0.$passed}" > /logs/verifier/reward.json', reward=0.1
    ),
    "rewards in JSON": Feature(
        graded='echo "{\\"reward\\": 0.$passed, \\"speed\\": 3}" > /logs/verifier/reward.json',
        reward=0.1,
    ),
    "limits": Feature(
        toml="[environment]\ncpus = 1\nmemory_mb = 300",
        look="cd /sys/fs/cgroup; cat cpu.max memory.max cpu/cpu.cfs_quota_us "
        "memory/memory.limit_in_bytes 2> /dev/null; true",
    ),
}


def write(folder: Path, name: str, feature: Feature) -> str:
    """Write a feature's task and return its name."""
    task = folder / name.replace(" ", "-").replace("'", "")
    solve = f"{{ {feature.look}; }} > /logs/artifacts/look.txt\n{feature.solve}"
    tests = (
        f"{{ {feature.look}; }} > /logs/verifier/look.txt\n"
        f"if {feature.check}; then passed=1; else passed=0; fi\n{feature.graded}"
    )
    files = {
        "task.toml": f'schema_version = "1.4"\n{feature.toml}\n',
        "instruction.md": "Do it.\n",
        "environment/Dockerfile": f"FROM {BASE_IMAGE}\nWORKDIR /app\n{feature.lines}\n",
        "solution/solve.sh": f"#!/bin/bash\n{solve}\n",
        "tests/test.sh": f"#!/bin/bash\n{tests}\n",
        **feature.files,
    }
    for relative, text in files.items():
        path = task / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    for relative, target in feature.links.items():
        (task / relative).symlink_to(target)
    return task.name


def left(saved: Path) -> dict[str, str | None]:
    """What a rollout left: artifacts and the tests' files with their content, logs by name."""
    return {
        str(path.relative_to(saved)): path.read_text() if path.name == "look.txt" else None
        for path in saved.rglob("*")
        if path.is_file()
    }


@pytest.mark.timeout(900)
async def test_features_mean_the_same_in_harbors_environment(
    make_backend: MakeBackend, tmp_path: Path, artifact_root: Path
) -> None:
    folder = tmp_path / "tasks"
    names = {write(folder, name, feature): name for name, feature in FEATURES.items()}
    places = {
        "ours": EnvironmentConfig(import_path=DOCKER),
        "harbors": EnvironmentConfig(type=EnvironmentType.DOCKER),
    }
    seen: dict[str, dict[str, Any]] = {name: {} for name in FEATURES}

    async def run_all(place: str) -> None:
        backend = make_backend(
            agent="oracle",
            tasks_dir=folder,
            task_mode="dataset",
            environment_config=places[place],
        )

        async def run_one(task: str) -> None:
            rollout = f"{place}-{task}"
            outcome = await run(backend, rollout, metadata={"harbor_task_id": task})
            sample = outcome.result.sample
            seen[names[task]][place] = {
                "reward": None if sample is None else sample.reward,
                "rewards": None if sample is None else sample.extra_fields.get("rewards"),
                "category": outcome.result.err_category,
                **left(artifact_root / rollout),
            }

        await asyncio.gather(*map(run_one, names))

    await asyncio.gather(*map(run_all, places))
    assert {name: found["ours"]["reward"] for name, found in seen.items()} == {
        name: feature.reward for name, feature in FEATURES.items()
    }
    for name, found in seen.items():
        ours, harbors = found["ours"], found["harbors"]
        differ = {
            key: (ours.get(key), harbors.get(key))
            for key in ours.keys() | harbors.keys()
            if ours.get(key) != harbors.get(key)
        }
        assert differ == {}, f"{name}: ours, and Harbor's"
        if FEATURES[name].reward is None:
            assert ours["category"] == "infrastructure_error", name
        else:
            assert sum(path.endswith("/look.txt") for path in ours) >= 2, f"{name}: {list(ours)}"
