"""Running a plan on HarborBackend."""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.agents.wiring import ENDPOINTLESS
from harbor_backend.environments.choose import OURS, SKY_DOCKER
from harbor_backend.environments.engine import EngineError, shared_engine
from harbor_backend.sky_docker.errors import NoHostError
from osmosis_ai.cli.errors import FAILED, CliError
from osmosis_ai.cli.trials.command import EnvironmentName, Keep
from osmosis_ai.cli.trials.keep import Keeper
from osmosis_ai.cli.trials.plan import Plan, Trial
from osmosis_ai.cli.trials.progress import Progress, make_progress
from osmosis_ai.cli.trials.results import TrialReport, trial_report
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV, ARTIFACTS, rollout_dir
from osmosis_ai.rollout.context import RolloutContext
from osmosis_ai.rollout.trajectory.save import save_trajectory
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest


async def run_plan(plan: Plan) -> list[TrialReport]:
    """Run every trial; returns the reports in the order in which trials ended.

    Cancelling it ends the running trials and removes their sandboxes first.

    Raises:
        CliError: the agent or the grader cannot be used, the engine does not
            answer, or the runtime cannot be built.
    """
    backend = _backend(plan)
    try:
        if plan.remote is None:
            await _check_engine(plan)
        else:
            await _check_hosts(backend)
        await _build_runtime(backend)
        return await _run_trials(plan, backend)
    finally:
        await backend.shutdown()


def _backend(plan: Plan) -> HarborBackend:
    # The backend takes it from here, as everything that finds its results again does.
    os.environ[ARTIFACT_ROOT_ENV] = str(plan.output)
    try:
        return HarborBackend(
            orchestrator=TrialQueue(n_concurrent=_at_a_time(plan)),
            tasks_dir=plan.tasks_dir,
            task_mode="dataset",
            agent=plan.agent,
            grader=plan.grader,
            environment_config=_forced(plan),
            agent_base_url=None if plan.remote is None else plan.remote.agent_base_url,
            agent_bind=None if plan.remote is None else plan.remote.agent_bind,
            keep_sandboxes=plan.keep is not Keep.NONE,
        )
    except (ValueError, TypeError, ImportError) as exc:
        raise CliError(" ".join(str(exc).split())) from exc
    except RuntimeError as exc:  # a service that it needs is not there
        raise CliError(" ".join(str(exc).split()), FAILED) from exc


def _at_a_time(plan: Plan) -> int:
    """What the plan says, and no more than the hosts have slots: others wait in the queue."""
    slots = None if plan.remote is None else plan.remote.slots
    return plan.n_concurrent if slots is None else min(plan.n_concurrent, slots)


def _forced(plan: Plan) -> EnvironmentConfig | None:
    options = {} if plan.remote is None else plan.remote.options
    match plan.environment:
        case EnvironmentName.DOCKER:
            return None
        case EnvironmentName.OSMOSIS_DOCKER:
            return EnvironmentConfig(import_path=OURS)
        case EnvironmentName.HARBOR_DOCKER:
            return EnvironmentConfig(type=EnvironmentType.DOCKER)
        case EnvironmentName.SKYPILOT:
            return EnvironmentConfig(type=EnvironmentType.SKYPILOT, kwargs=options)
        case EnvironmentName.SKY_DOCKER:
            return EnvironmentConfig(import_path=SKY_DOCKER, kwargs=options)


async def _check_hosts(backend: HarborBackend) -> None:
    fleet = await backend.begin()
    if fleet is None:
        return
    try:
        await fleet.links()
    except NoHostError as exc:
        raise CliError(str(exc), FAILED) from exc


async def _check_engine(plan: Plan) -> None:
    try:
        await shared_engine().call("GET", "/version", timeout=10)
    except EngineError as exc:
        raise CliError(str(exc), FAILED) from exc
    if not plan.needs_compose:
        return
    try:
        probe = await asyncio.create_subprocess_exec(
            "docker", "compose", "version",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        found = await probe.wait() == 0
    except FileNotFoundError:
        found = False
    if not found:
        raise CliError(
            f"Docker Compose v2 is not there, and {', '.join(plan.needs_compose)} cannot run "
            "without it: install it (`make setup` does), or choose other tasks with --task",
            FAILED,
        )


async def _build_runtime(backend: HarborBackend) -> None:
    """Build what is mounted into every sandbox once, before trials wait for it."""
    try:
        await backend.prewarm(task_ids=[], prewarm="full")
    except ValueError as exc:  # the project of the agent or the grader
        raise CliError(str(exc)) from exc
    except (RuntimeError, OSError) as exc:
        raise CliError(str(exc), FAILED) from exc


async def _run_trials(plan: Plan, backend: HarborBackend) -> list[TrialReport]:
    trials = plan.trials()
    reports: list[TrialReport] = []
    keeper = None if plan.remote else Keeper(shared_engine(), plan.keep, plan.passing_reward)
    # Those next in line are staged while others run; more would only fill the disk.
    staged = asyncio.Semaphore(2 * plan.n_concurrent)

    def status_of(rollout_id: str) -> str:
        return str((backend.rollout_status(rollout_id) or {"status": "ending"})["status"])

    async def run_one(trial: Trial, progress: Progress) -> None:
        async with staged:
            progress.started(trial)
            report = await _run_trial(plan, backend, trial)
            kept = await keeper.settle(trial.rollout_id, report.reward) if keeper else []
            reports.append(replace(report, kept=kept))
            progress.finished(reports[-1])

    try:
        with make_progress(len(trials), status_of) as progress:
            async with asyncio.TaskGroup() as group:
                for trial in trials:
                    group.create_task(run_one(trial, progress))
    finally:
        if keeper is not None:
            await keeper.sweep()
    return reports


async def _run_trial(plan: Plan, backend: HarborBackend, trial: Trial) -> TrialReport:
    request = ExecutionRequest(id=trial.rollout_id, metadata={"harbor_task_id": trial.task})
    began = time.monotonic()
    if plan.agent not in ENDPOINTLESS:
        with RolloutContext(plan.model or "", rollout_id=trial.rollout_id):
            outcome = await backend.execute(request)
    else:
        outcome = await backend.execute(request)
    report = trial_report(trial, outcome, time.monotonic() - began)
    directory = rollout_dir(plan.output, trial.rollout_id)
    return replace(
        report,
        logs=_if_there(directory / "logs"),
        artifacts=_if_there(directory / ARTIFACTS),
        trajectory=await _save_trajectory(plan, trial, outcome),
    )


async def _save_trajectory(plan: Plan, trial: Trial, outcome: ExecutionOutcome) -> str | None:
    if plan.agent in ENDPOINTLESS:  # what these leave is in the logs
        return None
    saved = await save_trajectory(
        rollout_id=trial.rollout_id,
        result=outcome.result_to_save,
        diagnostics=outcome.result.extra_fields,
        artifact_root=plan.output,
    )
    return None if saved.path is None else str(saved.path)


def _if_there(path: Path) -> str | None:
    return str(path) if path.is_dir() else None
