"""Running a plan on HarborBackend."""

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import DOCKER, SKY_DOCKER, HarborBackend, HarborBackendError
from harbor_backend.admin import ENDPOINTLESS, not_started, shared_engine
from osmosis_ai.cli.errors import FAILED, CliError
from osmosis_ai.cli.trials.choices import EnvironmentName, Keep
from osmosis_ai.cli.trials.job import JobRecorder
from osmosis_ai.cli.trials.keep import Keeper
from osmosis_ai.cli.trials.plan import Plan, Trial
from osmosis_ai.cli.trials.progress import Progress, make_progress
from osmosis_ai.cli.trials.results import TrialReport, trial_report
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV, ARTIFACTS, rollout_dir
from osmosis_ai.rollout.context import RolloutContext
from osmosis_ai.rollout.run import run_rollout
from osmosis_ai.rollout.trajectory.save import SaveResult
from osmosis_ai.rollout.types.execution import ExecutionRequest


async def run_plan(plan: Plan) -> list[TrialReport]:
    """Run every trial; returns the reports in the order in which trials ended.

    Cancelling it ends the running trials and removes their sandboxes first.

    Raises:
        CliError: the agent or the grader cannot be used, the engine does not
            answer, or the runtime cannot be built.
    """
    backend = _backend(plan)
    try:
        await _check_place(plan, backend)
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
            force_build=plan.force_build,
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
            return EnvironmentConfig(import_path=DOCKER)
        case EnvironmentName.HARBOR_DOCKER:
            return EnvironmentConfig(type=EnvironmentType.DOCKER)
        case EnvironmentName.SKYPILOT:
            return EnvironmentConfig(type=EnvironmentType.SKYPILOT, kwargs=options)
        case EnvironmentName.SKY_DOCKER:
            return EnvironmentConfig(import_path=SKY_DOCKER, kwargs=options)


async def _check_place(plan: Plan, backend: HarborBackend) -> None:
    try:
        await backend.check_reachable(plan.runnable)
    except HarborBackendError as exc:
        raise CliError(str(exc), FAILED) from exc


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
    # The default folder is every run's; a job is one's own.
    job = JobRecorder(plan, backend.model_name) if plan.write_report else None
    # Those next in line are staged while others run; more would only fill the disk.
    staged = asyncio.Semaphore(2 * plan.n_concurrent)

    def status_of(rollout_id: str) -> str:
        return str((backend.rollout_status(rollout_id) or {"status": "ending"})["status"])

    async def run_one(trial: Trial, progress: Progress) -> None:
        async with staged:
            progress.started(trial)
            report = await _run_trial(plan, backend, trial, job)
            kept = await keeper.settle(trial.rollout_id, report.reward) if keeper else []
            reports.append(replace(report, kept=kept))
            progress.finished(reports[-1])

    if job is not None:
        await job.begin(trials)
    try:
        with make_progress(len(trials), status_of) as progress:
            async with asyncio.TaskGroup() as group:
                for trial in trials:
                    group.create_task(run_one(trial, progress))
    finally:
        if keeper is not None:
            await keeper.sweep()
        if job is not None:
            await job.close()
    return reports


async def _run_trial(
    plan: Plan, backend: HarborBackend, trial: Trial, job: JobRecorder | None
) -> TrialReport:
    problem = plan.problems.get(trial.task)
    if problem is not None:
        report = trial_report(trial, not_started(problem), 0.0)
        if job is not None:
            await job.add(report, ())
        return report
    request = ExecutionRequest(id=trial.rollout_id, metadata=plan.metadata(trial.task))
    has_model = plan.agent not in ENDPOINTLESS
    asked = RolloutContext(plan.model or "")  # with what the environment says of the model
    began = time.monotonic()
    finished = await run_rollout(
        backend,
        request,
        model=asked.chat_completions_url or None if has_model else None,
        api_key=asked.api_key,
    )
    report = trial_report(trial, finished.outcome, time.monotonic() - began)
    saved = await finished.save(plan.output) if has_model else SaveResult()  # else: in the logs
    directory = rollout_dir(plan.output, trial.rollout_id)
    if job is not None:
        await job.add(report, finished.calls)
    return replace(
        report,
        logs=_if_there(directory / "logs"),
        artifacts=_if_there(directory / ARTIFACTS),
        trajectory=None if saved.path is None else str(saved.path),
    )


def _if_there(path: Path) -> str | None:
    return str(path) if path.is_dir() else None
