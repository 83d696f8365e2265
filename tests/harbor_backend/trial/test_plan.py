"""What is decided about a trial before Harbor runs it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harbor_backend.core.spec import AgentOptions, Model, StagedTask, TrialSpec
from harbor_backend.core.trial import Trial
from harbor_backend.places.place import Environments, Place, TaskFiles
from harbor_backend.program.bundle import UvError
from harbor_backend.program.program import Program
from harbor_backend.trial.plan import TrialPlanner
from harbor_backend.trial.task_folder import TaskFolder
from harbor_backend.trial.tasks import TaskError
from osmosis_ai.rollout import ExecutionRequest, RolloutContext
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.backend.live import LiveRollout
from osmosis_ai.rollout.backend.registry import LiveRollouts
from osmosis_ai.rollout.container.files import MAX_RESULT_BYTES
from osmosis_ai.rollout.context import CHAT_COMPLETIONS_URL_ENV, ModelEndpoint
from tests.harbor_backend.specs import native_program, workflow_program

if TYPE_CHECKING:
    from harbor_backend.program.runtime import Runtime

OPTIONS = AgentOptions("openai/m", {"max_turns": 3})
PROMPT = [{"role": "user", "content": "How many?"}]
URL = "http://127.0.0.1:9/v1"


class MadePlace(Place):
    """A place that knows one other for its tasks, reaches models over a network or by a socket,
    and may refuse a trial.
    """

    name = "made"

    def __init__(self, *, is_remote: bool = False, refusal: str = "") -> None:
        self.chosen: Place = self
        self.seen: list[StagedTask | TaskFiles | TrialSpec] = []
        self._is_remote = is_remote
        self._refusal = refusal

    def name_trial(self, rollout_id: str) -> str:
        return f"trial-of-{rollout_id}"

    def of(self, task: StagedTask | TaskFiles) -> Place:
        self.seen.append(task)
        return self.chosen

    def check(self, spec: TrialSpec) -> None:
        self.seen.append(spec)
        if self._refusal:
            raise ValueError(self._refusal)

    def remote_model(self, url: str, token: str) -> ModelEndpoint | None:
        return ModelEndpoint(f"{url}/from-afar", token) if self._is_remote else None

    async def environments(self, trial: Trial, stack: AsyncExitStack) -> Environments:
        raise NotImplementedError


@dataclass
class Built(Program):
    """A program whose runtime is there."""

    async def runtime(self) -> "Runtime":
        return cast("Runtime", SimpleNamespace(path=Path("/runtimes/abc")))


def built(program: Program) -> Program:
    return Built(program.native_agent, program.entry_points, program.project, program.bundle)


FLOW, JUDGED = built(workflow_program()), built(workflow_program(grader=True))
ORACLE = built(native_program("oracle"))


@dataclass
class Case:
    """A rollout and its backend, and what of its trial follows from them.

    The models are "socket", "remote", or ``None``.
    """

    request: dict[str, Any] = field(default_factory=lambda: {"prompt": PROMPT})
    program: Program = field(default_factory=lambda: FLOW)
    mode: str = "template"
    url: str = ""
    judge: str | None = None
    is_remote: bool = False
    task: str = "counting"
    prompt: list[dict[str, Any]] = field(default_factory=lambda: PROMPT)
    has_tests: bool = False
    agent_timeout_sec: float | None = None
    policy: str | None = None
    judges: str | None = None


def in_dataset(task_id: str, **fields: Any) -> Case:
    """A rollout of a dataset; its task has an instruction of its own."""
    request = {"metadata": {"harbor_task_id": task_id}, **fields.pop("request", {})}
    return Case(request=request, mode="dataset", prompt=[], **fields)


CASES = {
    "a prompt in the template": Case(),
    "a task of the dataset": in_dataset("sorting", task="sorting", has_tests=True),
    "its prompt is not used": in_dataset("counting", request={"prompt": PROMPT}),
    "the task's deadline": in_dataset("slow", task="slow", has_tests=True, agent_timeout_sec=77.0),
    "the rollout's wins": in_dataset(
        "slow",
        request={"agent_timeout_sec": 5},
        task="slow",
        has_tests=True,
        agent_timeout_sec=5.0,
    ),
    "one that has passed is one": Case(
        request={"prompt": PROMPT, "agent_timeout_sec": 0}, agent_timeout_sec=0.0
    ),
    "a model by a socket": Case(url=URL, policy="socket"),
    "a model over a network": Case(url=URL, is_remote=True, policy="remote"),
    "an agent in this process needs no network": Case(
        url=URL, is_remote=True, program=ORACLE, policy="socket"
    ),
    "a judge for a grader": Case(program=JUDGED, judge="embedded/shell", judges="socket"),
    "a judge over a network": Case(
        program=JUDGED, judge="embedded/shell", is_remote=True, judges="remote"
    ),
    "a judge, and nobody who asks it": Case(judge="embedded/shell"),
    "a grader without a judge": Case(program=JUDGED, url=URL, policy="socket"),
    "both": Case(program=JUDGED, url=URL, judge="embedded/shell", policy="socket", judges="socket"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tasks: one without tests, two with, and one of these with a deadline."""
    monkeypatch.delenv(CHAT_COMPLETIONS_URL_ENV, raising=False)
    tests = {"tests/test.sh": "#!/bin/sh\n"}
    slow = {"task.toml": "[agent]\ntimeout_sec = 77\n", **tests}
    for task, files in {"counting": {}, "sorting": tests, "slow": slow}.items():
        every = {"task.toml": "", "instruction.md": "Do it.", "environment/Dockerfile": ""}
        for name, text in {**every, **files}.items():
            path = tmp_path / "tasks" / task / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return tmp_path


def planner(case: Case, place: Place, folder: Path) -> TrialPlanner:
    tasks = folder / "tasks"
    return TrialPlanner(
        tasks=TaskFolder(tasks / "counting" if case.mode == "template" else tasks, case.mode),
        program=case.program,
        place=place,
        gateway=BackendGateway(case.judge),
        options=OPTIONS,
        shared_grading=True,
        workflow_rewards=False,
        max_result_bytes=MAX_RESULT_BYTES,
        work_dir=folder / "work",
        trials_dir=folder / "trials",
    )


def way(model: Model | None) -> str | None:
    """How a sandbox reaches a model; a remote one's address is the place's."""
    if model is None:
        return None
    if model.remote is None:
        return "socket"
    endpoint = model.endpoint
    assert model.remote == ModelEndpoint(f"{endpoint.url}/from-afar", endpoint.token)
    return "remote"


@asynccontextmanager
async def admitted(case: Case) -> AsyncIterator[LiveRollout]:
    request = ExecutionRequest.model_validate({"id": "r", "label": "blue", **case.request})
    with RolloutContext(case.url, "key", "r") if case.url else nullcontext():
        async with LiveRollouts().admit(request) as rollout:
            yield rollout


@pytest.mark.parametrize("name", CASES)
async def test_a_trial_is_decided(name: str, folder: Path) -> None:
    case = CASES[name]
    place = MadePlace(is_remote=case.is_remote)
    made = planner(case, place, folder)
    staged = folder / "work" / "rollouts" / "trial-of-r"
    async with made.gateway, admitted(case) as rollout:
        async with AsyncExitStack() as stack:
            spec, chosen = await made.plan(rollout, stack)
            assert chosen is place
            assert place.seen == [spec.task, spec]
            assert spec == TrialSpec(
                name="trial-of-r",
                trials_dir=folder / "trials",
                request=rollout.request.model_copy(update={"prompt": case.prompt}),
                program=case.program,
                task=StagedTask(
                    staged / case.task,
                    spec.task.config,
                    case.has_tests,
                    folder / "tasks" / case.task,
                ),
                runtime=Path("/runtimes/abc"),
                agent_timeout_sec=case.agent_timeout_sec,
                options=OPTIONS,
                policy=spec.policy,
                judge=spec.judge,
                shared_grading=True,
            )
            assert (way(spec.policy), way(spec.judge)) == (case.policy, case.judges)
            assert (spec.task.path / "task.toml").is_file()
            models = [model for model in (spec.policy, spec.judge) if model is not None]
            assert not any(model.endpoint.lifetime.closed for model in models)
        assert not staged.exists()
        assert all(model.endpoint.lifetime.closed for model in models)


async def test_the_place_of_the_task_is_asked_and_returned(folder: Path) -> None:
    """The one that the backend holds names the trial; the other reaches its model, and checks."""
    held, chosen = MadePlace(), MadePlace(is_remote=True)
    held.chosen = chosen
    case = Case(url=URL)
    made = planner(case, held, folder)
    async with made.gateway, admitted(case) as rollout, AsyncExitStack() as stack:
        spec, place = await made.plan(rollout, stack)
        assert place is chosen
        assert way(spec.policy) == "remote"
        assert (held.seen, chosen.seen) == ([spec.task], [spec])


REFUSED: dict[str, tuple[Case, str]] = {
    "a template without a prompt": (
        Case(request={}),
        "Template mode needs the rollout's prompt, and it is empty",
    ),
    "a dataset without an id": (
        Case(mode="dataset"),
        r"needs metadata\['harbor_task_id'\]",
    ),
    "an id that is no task's": (in_dataset("unknown"), "names no directory"),
    "an id that leaves the folder": (in_dataset("../work"), "leaves tasks_dir"),
    "an id that is no text": (
        Case(request={"metadata": {"harbor_task_id": 3}}, mode="dataset"),
        "must be a non-empty string",
    ),
    "a path to nothing": (
        Case(request={"prompt": PROMPT, "metadata": {"harbor_task": "./nowhere"}}),
        "does not exist",
    ),
    "a package without an organisation": (
        Case(request={"prompt": PROMPT, "metadata": {"harbor_task": "counting"}}),
        "is neither a path",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_rollout_whose_task_cannot_be_run(name: str, folder: Path) -> None:
    case, said = REFUSED[name]
    made = planner(case, MadePlace(), folder)
    async with made.gateway, admitted(case) as rollout:
        with pytest.raises(TaskError, match=said):
            async with AsyncExitStack() as stack:
                await made.plan(rollout, stack)
    assert list(folder.glob("work/rollouts/*")) == []


@dataclass
class Unbuilt(Program):
    """A program whose runtime cannot be had."""

    async def runtime(self) -> "Runtime":
        raise UvError("installing", "does not resolve")


NOTHING_LEFT: dict[str, tuple[Case, str, type[Exception], str]] = {
    # what the place says, what is raised, its text
    "a place that refuses it": (
        Case(url=URL, judge="embedded/shell", program=JUDGED),
        "no accelerators",
        ValueError,
        "no accelerators",
    ),
    "a runtime that is not built": (
        Case(program=Unbuilt(None, None, None, None)),
        "",
        UvError,
        "installing failed",
    ),
    "a model that is none": (Case(url="ftp://127.0.0.1"), "", ValueError, "ftp"),
    "a judge that is none": (Case(judge="nobody", program=JUDGED), "", ValueError, "nobody"),
}


@pytest.mark.parametrize("name", NOTHING_LEFT)
async def test_nothing_is_left_of_a_trial_that_cannot_be(name: str, folder: Path) -> None:
    case, refusal, kind, said = NOTHING_LEFT[name]
    made = planner(case, MadePlace(refusal=refusal), folder)
    async with made.gateway, admitted(case) as rollout:
        with pytest.raises(kind, match=said):
            async with AsyncExitStack() as stack:
                await made.plan(rollout, stack)
        assert list(folder.glob("work/rollouts/*")) == []
        # Its endpoints are closed, so that the same rollout may be run again.
        async with made.gateway.open("r", URL), made.gateway.open("r", URL, kind="judge"):
            pass
