"""Tasks, images, ids and artifacts that are not what one expects."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.verifier import grader_network
from osmosis_ai.rollout import ExecutionOutcome, RolloutContext
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.conftest import own_containers
from tests.harbor_backend.rollouts.conftest import DATASET, MakeBackend, MakeTask, run, until

pytestmark = pytest.mark.docker

SECRET = "sk-never-to-be-seen-5471"
OTHER_USER = f"""FROM {BASE_IMAGE}
RUN useradd -m -u 1500 worker \\
    && printf '#!/bin/sh\\nexec "$@"\\n' > /entry && chmod 755 /entry
WORKDIR /app
ENTRYPOINT ["/entry"]
USER worker
"""
# The supervisor is not the first process, so that root inside can kill it.
WRAPPED = f"""FROM {BASE_IMAGE}
RUN printf '#!/bin/sh\\n"$@"\\nexit 3\\n' > /wrap && chmod 755 /wrap
ENTRYPOINT ["/wrap"]
"""


def shell(command: str) -> dict[str, Any]:
    """Fields of a rollout whose workflow runs this command."""
    return {"prompt": [{"role": "user", "content": f"Run:\n```sh\n{command}\n```\n"}]}


def said(outcome: ExecutionOutcome) -> str:
    assert outcome.workflow.sample is not None, outcome.workflow
    return str(outcome.workflow.sample.messages[-1]["content"])


async def test_an_agent_that_kills_its_supervisor_loses_the_sandbox(
    make_backend: MakeBackend, make_task: MakeTask, engine: Any
) -> None:
    task = make_task(dockerfile=WRAPPED)
    backend = make_backend(agent="adversary:Act", tasks_dir=task)
    kill = "kill -9 $(pgrep -f supervisor.main | sed -n 2p); sleep 600"
    outcome = await asyncio.wait_for(run(backend, **shell(kill), grade=False), 60)
    assert outcome.result.err_category == "infrastructure_error", outcome.result
    assert "sandbox ended" in str(outcome.result.err_message)
    assert own_containers(engine) == []


async def test_an_agent_cannot_lose_its_sandbox_where_the_supervisor_is_first(
    make_backend: MakeBackend,
) -> None:
    backend = make_backend(agent="adversary:Act")
    kill = "for s in INT TERM HUP USR1 STOP SEGV KILL; do kill -$s 1; done; sleep 0.2; echo still"
    assert said(await run(backend, **shell(kill), grade=False)).endswith("still\n")


async def test_an_image_whose_entry_point_needs_its_user(
    make_backend: MakeBackend, make_task: MakeTask, artifact_root: Path
) -> None:
    """It cannot be supervised; workflow and grader run all the same."""
    task = make_task(dockerfile=OTHER_USER)
    backend = make_backend(agent="adversary:Act", grader="adversary:LookAround", tasks_dir=task)
    outcome = await run(
        backend, **shell("id -un; pwd; echo 'by the agent' > /logs/artifacts/seen.txt")
    )
    assert said(outcome) == "worker\n/app\n"
    assert outcome.grader is not None
    assert outcome.grader.sample is not None, outcome.grader
    assert outcome.grader.sample.extra_fields["artifact"] == "by the agent\n"
    assert outcome.grader.sample.reward == 1.0


async def test_a_grader_without_root_reads_and_writes_artifacts(
    make_backend: MakeBackend, make_task: MakeTask, artifact_root: Path
) -> None:
    task = make_task(dockerfile=f"FROM {BASE_IMAGE}\nRUN useradd -m worker\nUSER worker\n")
    backend = make_backend(agent="adversary:Act", grader="adversary:LookAround", tasks_dir=task)
    command = "umask 077; echo x > /logs/artifacts/seen.txt; mkdir -p /logs/artifacts/d; id -un"
    outcome = await run(backend, **shell(command))
    assert said(outcome) == "worker\n"
    assert outcome.grader is not None
    assert outcome.grader.sample is not None, outcome.grader
    assert outcome.grader.sample.extra_fields["artifact"] == "x\n"


async def test_the_model_is_reached_from_such_an_image_too(
    make_backend: MakeBackend, make_task: MakeTask, policy: tuple[str, list[str]]
) -> None:
    url, keys = policy
    backend = make_backend(agent="adversary:CallModel", tasks_dir=make_task(dockerfile=OTHER_USER))
    with RolloutContext(url, SECRET, "r-1"):
        outcome = await run(backend, grade=False)
    assert json.loads(said(outcome))["said"] == "from the policy"
    assert keys == [f"Bearer {SECRET}"]


async def test_the_agents_user_is_the_tasks(make_backend: MakeBackend, make_task: MakeTask) -> None:
    task = make_task(
        dockerfile=f"FROM {BASE_IMAGE}\nRUN useradd -m worker\n", toml='[agent]\nuser = "worker"\n'
    )
    backend = make_backend(agent="adversary:Act", tasks_dir=task)
    command = "id -un; echo $HOME; touch /logs/artifacts/mine && echo writable; touch /root/x"
    lines = said(await run(backend, **shell(command), grade=False)).splitlines()
    assert lines[:3] == ["worker", "/home/worker", "writable"]
    assert "ermission denied" in lines[3]


async def test_a_user_that_the_image_does_not_have(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(toml='[agent]\nuser = "nobody-here"\n')
    outcome = await run(make_backend(agent="adversary:Act", tasks_dir=task), **shell("true"))
    assert outcome.result.err_category == "validation_error"
    assert "unable to find user nobody-here" in str(outcome.result.err_message)


async def test_steps_are_run_by_a_workflow_and_graded_each(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(
        toml='multi_step_reward_strategy = "mean"\n[[steps]]\nname = "one"\n'
        '[[steps]]\nname = "two"\n',
        instruction=None,
    )
    for name, command in (("one", "echo 1 > /app/one"), ("two", "cat /app/one; touch /app/two")):
        step = task / "steps" / name
        (step / "tests").mkdir(parents=True)
        (step / "instruction.md").write_text(f"```sh\n{command}\n```\n")
        (step / "tests" / "test.sh").write_text(
            f"#!/bin/sh\ntest -e /app/{name} && echo {int(name == 'two')} "
            "> /logs/verifier/reward.txt\n"
        )
    backend = make_backend(agent="adversary:Act", tasks_dir=task.parent, task_mode="dataset")
    outcome = await run(backend, metadata={"harbor_task_id": "made"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 0.5
    assert [m["role"] for m in outcome.result.sample.messages] == ["user", "assistant"] * 2
    assert said(outcome) == "1\n"


async def test_steps_are_graded_by_a_grader_in_sandboxes_of_its_own(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    """The agent's sandbox lives until its last step."""
    task = make_task(toml='[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n', instruction=None)
    for name, command in (("one", "echo 1 > /app/one"), ("two", "cat /app/one")):
        (task / "steps" / name).mkdir(parents=True)
        (task / "steps" / name / "instruction.md").write_text(f"```sh\n{command}\n```\n")
    backend = make_backend(
        agent="adversary:Act",
        grader="adversary:LookAround",
        tasks_dir=task.parent,
        task_mode="dataset",
    )
    outcome = await run(backend, metadata={"harbor_task_id": "made"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 1.0
    assert said(outcome) == "1\n"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (NetworkMode.PUBLIC, NetworkMode.PUBLIC),
        (NetworkMode.NO_NETWORK, NetworkMode.NO_NETWORK),
        (NetworkMode.ALLOWLIST, NetworkMode.NO_NETWORK),
    ],
)
def test_a_graders_network_is_never_wider_than_the_tasks(
    task: NetworkMode, expected: NetworkMode
) -> None:
    hosts = ["example.com"] if task is NetworkMode.ALLOWLIST else []
    policy = NetworkPolicy(network_mode=task, allowed_hosts=hosts)
    assert grader_network(policy).network_mode is expected


@pytest.mark.parametrize("mode", ["template", "dataset"])
async def test_a_rollouts_own_task_wins(
    make_backend: MakeBackend, make_task: MakeTask, mode: str
) -> None:
    own = make_task(tests="echo 0.25 > /logs/verifier/reward.txt")
    arguments = {"tasks_dir": DATASET} if mode == "dataset" else {}
    backend = make_backend(agent="nop", task_mode=mode, **arguments)
    outcome = await run(backend, metadata={"harbor_task": str(own)})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 0.25


async def test_damaged_tasks_of_a_dataset(make_backend: MakeBackend, make_task: MakeTask) -> None:
    linked = make_task("linked")
    (linked / "environment" / "data").symlink_to("/etc")
    (make_task("untitled") / "task.toml").unlink()
    backend = make_backend(agent="nop", tasks_dir=linked.parent, task_mode="dataset")
    for name, text in (("linked", "symbolic link"), ("untitled", "no task.toml")):
        outcome = await run(backend, name, metadata={"harbor_task_id": name})
        assert outcome.result.err_category == "validation_error"
        assert text in str(outcome.result.err_message)


@pytest.mark.parametrize("task_id", ["..", ".", "/etc", "a/../../multiply", "link"])
async def test_task_ids_stay_in_their_folder(
    make_backend: MakeBackend, make_task: MakeTask, task_id: str
) -> None:
    folder = make_task().parent
    (folder / "link").symlink_to(DATASET / "log-report")
    backend = make_backend(agent="nop", tasks_dir=folder, task_mode="dataset")
    outcome = await run(backend, metadata={"harbor_task_id": task_id})
    assert outcome.result.err_category == "validation_error"
    assert "leaves tasks_dir" in str(outcome.result.err_message)


async def test_artifacts_that_would_leave_their_directory(
    make_backend: MakeBackend, artifact_root: Path
) -> None:
    backend = make_backend(agent="adversary:Act")
    outcome = await run(
        backend,
        **shell(
            "cd /logs/artifacts && ln -s /etc/passwd absolute && ln -s ../../../.. up "
            "&& ln -s plain inside && mkfifo pipe && echo x > plain && echo y > '-rf' "
            "&& printf z > \"$(printf 'new\\nline')\" && chmod 000 plain "
            "&& mkdir d && cd d && for i in $(seq 1000); do mkdir d && cd d; done; touch leaf"
        ),
        grade=False,
    )
    assert outcome.result.status == "success", outcome.result
    saved = artifact_root / "r-1" / "artifacts"
    assert sorted(path.name for path in saved.iterdir()) == ["-rf", "d", "new\nline", "plain"]
    assert (saved / "plain").read_text() == "x\n"
    assert any("left out" in note for note in outcome.result.extra_fields["notes"])


async def test_a_flood_of_output_is_bounded(make_backend: MakeBackend, artifact_root: Path) -> None:
    command = "head -c 50000000 /dev/zero | tr '\\0' x > /proc/$PPID/fd/1; echo"
    backend = make_backend(agent="adversary:Act")
    # The runner's own descriptors are sealed, so the flood has to come through the workflow.
    outcome = await run(backend, **shell(command), grade=False)
    assert "ermission denied" in said(outcome)
    outcome = await run(backend, "r-2", **shell("head -c 30000000 /dev/zero | tr '\\0' x"))
    assert len(said(outcome)) == 30_000_000
    sizes = {path.name: path.stat().st_size for path in artifact_root.rglob("*") if path.is_file()}
    assert max(sizes.values()) < 9 * 1024 * 1024, sizes


async def test_a_large_prompt_goes_in(make_backend: MakeBackend) -> None:
    text = "x" * 20_000_000
    prompt = [{"role": "user", "content": f"{text}\n```sh\necho fine\n```\n"}]
    assert said(await run(make_backend(agent="adversary:Act"), prompt=prompt)) == "fine\n"


async def test_processes_left_behind_delay_nothing(make_backend: MakeBackend, engine: Any) -> None:
    backend = make_backend(agent="adversary:Act", grader="adversary:LookAround")
    command = "for i in 1 2 3; do setsid nohup sleep 1000 >/dev/null 2>&1 & done; echo left"
    outcome = await asyncio.wait_for(run(backend, **shell(command)), 60)
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == 1.0
    assert own_containers(engine) == []


@pytest.mark.parametrize("rollout_id", ["ünï-日本", "a b$HOME`id`'\"", "-rf", "x" * 200, "$$"])
async def test_strange_ids(
    make_backend: MakeBackend, make_task: MakeTask, artifact_root: Path, rollout_id: str
) -> None:
    backend = make_backend(agent="adversary:Act", grader="adversary:LookAround")
    outcome = await run(backend, rollout_id, **shell("touch /logs/artifacts/here"))
    assert outcome.result.status == "success", outcome.result
    assert (artifact_root / rollout_id / "artifacts" / "here").exists()


async def test_strange_ids_in_a_task_of_several_services(make_backend: MakeBackend) -> None:
    backend = make_backend(agent="nop", tasks_dir=DATASET, task_mode="dataset")
    outcome = await run(backend, "a $$ ${HOME} '\"", metadata={"harbor_task_id": "kv-migrate"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 0.0


async def test_an_import_that_fails_in_the_sandbox_only(
    make_backend: MakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project]\nname = "inside-only"\nversion = "1.0"\ndependencies = ["osmosis-ai"]\n'
    )
    (project / "inside_only.py").write_text(
        "import os\nfrom osmosis_ai.rollout import AgentWorkflow\n"
        "if os.path.exists('/run/osmosis'):\n    raise ImportError('no display in here')\n"
        "class Flow(AgentWorkflow):\n    async def run(self, ctx):\n        return None\n"
    )
    monkeypatch.syspath_prepend(str(project))
    outcome = await run(make_backend(agent="inside_only:Flow", code_dir=project))
    assert outcome.result.status == "failure"
    assert "no display in here" in str(outcome.result.err_message)


async def test_no_key_is_in_what_harbor_writes(make_backend: MakeBackend, tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    backend = make_backend(
        agent="adversary:Act", trials_dir=trials, cleanup_successful_trials=False
    )
    with RolloutContext("http://127.0.0.1:9/v1", SECRET, "r-1"):
        outcome = await run(backend, **shell("env; cat /proc/*/environ /proc/*/cmdline"))
    files = [path for path in trials.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in said(outcome)


async def test_cancelling_while_grading(
    make_backend: MakeBackend, make_task: MakeTask, engine: Any
) -> None:
    backend = make_backend(agent="nop", tasks_dir=make_task(tests="sleep 600"))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run(backend))
        await until(lambda: (backend.rollout_status("r-1") or {}).get("status") == "grading")
        await backend.cancel_rollouts(prefix="r-")
    assert running.result().result.status == "cancelled"
    assert own_containers(engine) == []


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2, 0.6])
async def test_cancelling_while_starting(
    make_backend: MakeBackend, engine: Any, delay: float
) -> None:
    backend = make_backend(agent="adversary:Wait", grader="adversary:LookAround")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run(backend))
        await until(lambda: backend.health()["running"])
        await asyncio.sleep(delay)
        await backend.cancel_rollouts(all=True)
    assert running.result().result.status == "cancelled"
    assert own_containers(engine) == []


async def test_two_backends_share_a_queue(artifact_root: Path, project: Path) -> None:
    queue = TrialQueue(n_concurrent=2)
    arguments: dict[str, Any] = {
        "orchestrator": queue,
        "tasks_dir": DATASET.parent / "multiply",
        "agent": "adversary:Act",
    }
    first, second = HarborBackend(**arguments), HarborBackend(**arguments)
    seen: list[str] = []

    async def note(result: Any) -> None:
        seen.append(result.sample.messages[-1]["content"])

    from osmosis_ai.rollout import ExecutionRequest

    requests = [
        ExecutionRequest(id="same-id", grade=False, **shell(f"echo {name}")) for name in "ab"
    ]
    await asyncio.gather(first.execute(requests[0], note), second.execute(requests[1], note))
    await first.shutdown()
    assert said(await second.execute(requests[1])) == "b\n"
    await second.shutdown()
    assert sorted(seen) == ["a\n", "b\n"]
