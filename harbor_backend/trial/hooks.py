"""What the backend does when Harbor reports a trial's progress."""

import asyncio
import time

from harbor.trial.hooks import TrialEvent, TrialHookEvent
from harbor.trial.queue import TrialQueue

from harbor_backend.core.trial import Trial, TrialRegistry
from harbor_backend.trial.outcome import ended_workflow
from osmosis_ai.common.observer import AGENT, ENVIRONMENT, GRADING
from osmosis_ai.rollout.types.status import RolloutStatus

_GIVEN_UP = {"CancelledError", "EnvironmentStartTimeoutError", "VerifierTimeoutError"}
"""What ends a trial while a sandbox that it asked for may still come."""


class TrialHooks:
    """Follows the trials of one backend on a queue that others may share."""

    def __init__(self, queue: TrialQueue, trials: TrialRegistry) -> None:
        self._trials = trials
        queue.add_hook(TrialEvent.START, self._started)
        queue.add_hook(TrialEvent.AGENT_START, self._agent_begins)
        queue.add_hook(TrialEvent.AGENT_END, self._agent_ended)
        queue.add_hook(TrialEvent.VERIFICATION_START, self._verifying)
        queue.add_hook(TrialEvent.END, self._ended)

    async def _started(self, event: TrialHookEvent) -> None:
        if trial := self._trials.named(event.config.trial_name):
            trial.results.began()
            trial.results.queued_sec = time.monotonic() - trial.submitted_at
            trial.rollout.status = RolloutStatus.RUNNING
            trial.sandbox_wait.asked()
            trial.observer.begin(ENVIRONMENT)

    async def _agent_begins(self, event: TrialHookEvent) -> None:
        if trial := self._trials.named(event.config.trial_name):
            trial.sandbox_wait.over()
            trial.agent_runs = True
            trial.agent_began = trial.agent_began or time.monotonic()
            trial.observer.begin(AGENT)

    async def _agent_ended(self, event: TrialHookEvent) -> None:
        if trial := self._trials.named(event.config.trial_name):
            trial.agent_runs = False
            trial.rollout.workflow = trial.results.workflow
            trial.observer.end()

    async def _verifying(self, event: TrialHookEvent) -> None:
        trial = self._trials.named(event.config.trial_name)
        if trial is None:
            return
        if event.result.step_results is None:
            await _announce_workflow(trial, event)
        trial.rollout.status = RolloutStatus.GRADING
        trial.observer.begin(GRADING)

    async def _ended(self, event: TrialHookEvent) -> None:
        if trial := self._trials.named(event.config.trial_name):
            error = event.result.exception_info
            if error is None or error.exception_type not in _GIVEN_UP:
                trial.sandbox_wait.over()
            trial.observer.end(seconds_ago=_since_graded(event))


async def _announce_workflow(trial: Trial, event: TrialHookEvent) -> None:
    """Tell that the workflow's phase ended; a step of several is no end."""
    result = await asyncio.to_thread(ended_workflow, trial, event.result, verified=True)
    await trial.rollout.workflow_ended(result)


def _since_graded(event: TrialHookEvent) -> float:
    """Seconds since the verifier ended, which Harbor announces with the trial's end only."""
    steps = event.result.step_results
    timing = steps[-1].verifier if steps else event.result.verifier
    if timing is None or timing.finished_at is None:
        return 0.0
    return (event.timestamp - timing.finished_at).total_seconds()
