"""The runner as a real process: result on a descriptor, and an end that nothing delays."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import RolloutErrorCategory, RolloutSample, RolloutStatus
from osmosis_ai.rollout.container.files import ContainerInput, decode_result, encode
from osmosis_ai.rollout.container.runner import PLACEHOLDER_KEY
from osmosis_ai.rollout.container.signing import SIGNED, opened
from tests.rollout.container.sandbox_process import ROOT, Ended, Sandbox

PROMPT = [{"role": "user", "content": "What is 12 x 34?"}]

WORKFLOW = """
import asyncio, ctypes, os, subprocess, sys, threading, time
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowConfig, get_rollout_context


class Config(AgentWorkflowConfig):
    name: str = "config"
    factor: int = 2


config = Config(factor=5)


class Workflow(AgentWorkflow[Config]):
    async def run(self, ctx):
"""


def run_body(sandbox: Sandbox, body: str, **fields: Any) -> Ended:
    """Run the agent's phase with ``body`` (8 spaces deep) as ``run()``."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    sandbox.write(WORKFLOW + lines + "\n")
    return sandbox.run("agent", workflow="main:Workflow", prompt=PROMPT, **fields)


def test_a_workflow(sandbox: Sandbox) -> None:
    ended = run_body(
        sandbox,
        """
print("to stdout"); print("to stderr", file=sys.stderr)
os.write(1, b"to descriptor 1")
(ctx.artifacts_dir / "a.txt").write_text("artifact")
seen = {"metadata": ctx.metadata, "factor": ctx.config.factor, "label": hasattr(ctx, "label")}
return [*ctx.prompt, {"role": "assistant", "content": b"\\xff", "odd": "\\ud800", "seen": seen}]
""",
        workflow_config="main:config",
        metadata={"row": 1},
    )
    assert ended.code == 0, ended.stderr
    assert ended.result.status is RolloutStatus.SUCCESS
    assert ended.result.sample is not None
    assert ended.result.sample.messages == [
        *PROMPT,
        {
            "role": "assistant",
            "content": b"\xff",
            "odd": "\ud800",
            "seen": {"metadata": {"row": 1}, "factor": 5, "label": False},
        },
    ]
    assert ended.result.sample.label is None
    assert ended.stdout == "to stdout\nto descriptor 1" or ended.stdout == (
        "to descriptor 1to stdout\n"
    )
    assert "to stderr" in ended.stderr
    assert (sandbox.project / "artifacts" / "a.txt").read_text() == "artifact"


def test_a_grader(sandbox: Sandbox) -> None:
    sandbox.write("""
from osmosis_ai.rollout import Grader, GraderConfig

config = GraderConfig(name="g", bonus=0.5)


class MyGrader(Grader):
    async def grade(self, ctx):
        assert ctx.sample.messages[0]["content"] == b"\\x00\\xff"
        assert (ctx.label, ctx.metadata) == ("408", {"row": 1})
        (ctx.artifacts_dir / "graded.txt").write_text("yes")
        ctx.sample.extra_fields["why"] = "right"
        ctx.set_reward(0.25 + self.config.bonus)
""")
    ended = sandbox.run(
        "grader",
        grader="main:MyGrader",
        grader_config="main:config",
        label="408",
        metadata={"row": 1},
        sample=RolloutSample(messages=[{"content": b"\x00\xff"}], metrics={"steps": 3}),
    )
    assert ended.result.status is RolloutStatus.SUCCESS, ended.result.err_message
    assert ended.result.sample is not None
    assert ended.result.sample.reward == 0.75
    assert ended.result.sample.metrics == {"steps": 3}
    assert ended.result.sample.extra_fields == {"why": "right"}
    assert (sandbox.project / "artifacts" / "graded.txt").read_text() == "yes"


def test_a_failing_grader_keeps_the_sample(sandbox: Sandbox) -> None:
    sample = RolloutSample(messages=[{"role": "user"}])
    ended = sandbox.run("grader", grader="nowhere:Grader", label="l", sample=sample)
    assert ended.code == 0
    assert ended.result.status is RolloutStatus.FAILURE
    assert "nowhere" in (ended.result.err_message or "")
    assert ended.result.sample == sample


@pytest.mark.parametrize(
    "body",
    [
        "threading.Thread(target=time.sleep, args=(50,)).start()\nreturn ctx.prompt",
        "asyncio.get_running_loop().run_in_executor(None, time.sleep, 50)\nreturn ctx.prompt",
        "task = asyncio.create_task(asyncio.sleep(50))\nreturn ctx.prompt",
        "import atexit; atexit.register(time.sleep, 50)\nreturn ctx.prompt",
    ],
    ids=["thread", "executor", "task", "atexit"],
)
def test_what_user_code_leaves_behind_delays_nothing(sandbox: Sandbox, body: str) -> None:
    ended = run_body(sandbox, body)
    assert ended.result.status is RolloutStatus.SUCCESS
    assert ended.code == 0
    assert ended.seconds < 30


def test_a_blocking_call_beyond_the_deadline_delays_nothing(sandbox: Sandbox) -> None:
    ended = run_body(sandbox, "await asyncio.to_thread(time.sleep, 50)", agent_timeout_sec=0.5)
    assert ended.result.err_category is RolloutErrorCategory.TIMEOUT
    assert ended.result.err_message == "Workflow exceeded its 0.5s deadline"
    assert ended.seconds < 30


def test_time_spent_queued_counts(sandbox: Sandbox) -> None:
    ended = run_body(sandbox, "return ctx.prompt", agent_timeout_sec=5, queued_sec=7)
    assert ended.result.err_category is RolloutErrorCategory.TIMEOUT
    assert "7.0s of it spent queued" in (ended.result.err_message or "")


@pytest.mark.parametrize("call", ["sys.exit(3)", "raise SystemExit('over')", "exit()"])
def test_sys_exit_is_a_failure_with_a_text(sandbox: Sandbox, call: str) -> None:
    ended = run_body(sandbox, "import site, builtins\n" + call)
    assert ended.code == 0
    assert ended.result.status is RolloutStatus.FAILURE
    assert ended.result.err_category is RolloutErrorCategory.AGENT_ERROR
    assert ended.result.err_message


@pytest.mark.parametrize(
    ("body", "code"),
    [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9), ("ctypes.string_at(0)", -11)],
)
def test_a_process_that_dies_leaves_no_result(sandbox: Sandbox, body: str, code: int) -> None:
    ended = run_body(sandbox, body)
    assert (ended.code, ended.data) == (code, b"")


@pytest.mark.parametrize("source", ["import sys; sys.exit(1)", "raise RuntimeError('no')", "("])
def test_a_module_that_does_not_import(sandbox: Sandbox, source: str) -> None:
    sandbox.write(source)
    ended = sandbox.run("agent", workflow="main:Workflow", prompt=PROMPT)
    assert ended.code == 0
    assert ended.result.status is RolloutStatus.FAILURE
    assert "main" in (ended.result.err_message or "")


@pytest.mark.parametrize("data", [b"", b"{}", b'{"rollout_id": "../x"}', b"\xff"])
def test_an_input_that_is_none(sandbox: Sandbox, data: bytes) -> None:
    ended = sandbox.run("agent", data)
    assert ended.code != 0
    assert ended.data == b""
    assert "ContainerInput" in ended.stderr or "decode" in ended.stderr


def test_the_process_is_sealed(sandbox: Sandbox) -> None:
    """A tool of the same user can neither read its memory nor write its result."""
    ended = run_body(
        sandbox,
        """
dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
code = "import os; print(os.path.exists('/proc/self/fd/3'))"
inherited = subprocess.run([sys.executable, "-c", code], capture_output=True).stdout.decode()
forged = os.system("(echo forged >&3) 2>/dev/null") == 0
return [{"dumpable": dumpable, "inherited": inherited.strip(), "forged": forged}]
""",
    )
    assert ended.result.sample is not None
    assert ended.result.sample.messages == [{"dumpable": 0, "inherited": "False", "forged": False}]


def test_without_a_gateway_the_input_routes_the_model(sandbox: Sandbox) -> None:
    ended = run_body(
        sandbox,
        "context = get_rollout_context()\n"
        "return [{'url': context.chat_completions_url, 'key': context.api_key, "
        "'id': context.rollout_id}]",
        chat_completions_url="http://h/v1",
        api_key="k",
    )
    assert ended.result.sample is not None
    assert ended.result.sample.messages == [{"url": "http://h/v1", "key": "k", "id": "r-1"}]


async def test_a_strands_agent_through_the_gateways_socket(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.write("from tests.rollout.server.workflows import MultiplyWorkflow as Workflow\n")
    path = tmp_path / "gateway.sock"
    async with (
        Gateway() as gateway,
        gateway.open("r-1", "embedded/multiply", api_key="sk-real") as endpoint,
        endpoint.listen_unix(path),
    ):
        ended = await asyncio.to_thread(
            sandbox.run,
            "agent",
            workflow="main:Workflow",
            prompt=PROMPT,
            gateway_socket=str(path),
        )
        assert len(endpoint.calls) == 2
    sample = ended.result.sample
    assert sample is not None, ended.result.err_message
    assert sample.messages[-1]["content"][-1]["text"].endswith("#### 408")
    assert sample.trajectory_messages is not None
    assert [m["role"] for m in sample.trajectory_messages] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert PLACEHOLDER_KEY not in str(sample)


@pytest.mark.parametrize("signed", [False, True])
def test_files_instead_of_descriptors(sandbox: Sandbox, signed: bool) -> None:
    """The module's own door, on paths; a run that needs no workflow to say what it is."""
    task = ContainerInput(rollout_id="r-1", workflow="nowhere:Workflow")
    source, target = sandbox.project / "in.json", sandbox.project / "out.json"
    key = "0" * 64
    source.write_bytes(key.encode() + b"\n" + encode(task) if signed else encode(task))
    done = subprocess.run(
        [
            sys.executable, "-m", "osmosis_ai.rollout.container.runner", "agent",
            "--input", source, "--result", target, *([SIGNED] if signed else []),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    data = target.read_bytes()
    answer = opened(data, key) if signed else data
    assert answer is not None
    result = decode_result(answer).result()
    assert result.status is RolloutStatus.FAILURE
    assert "nowhere" in (result.err_message or "")
    assert sorted(p.name for p in sandbox.project.iterdir()) == ["in.json", "out.json"]
