"""What the backend does when Harbor reports a trial's progress."""

import asyncio
import logging
import time

from harbor.trial.hooks import TrialEvent, TrialHookEvent
from harbor.trial.queue import TrialQueue

from harbor_backend.outcome import native_workflow
from harbor_backend.trials import TrialRecord
from osmosis_ai.rollout.types.status import RolloutStatus
from osmosis_ai.telemetry.current import AGENT, ENVIRONMENT, GRADING

logger = logging.getLogger(__name__)

_GIVEN_UP = {"CancelledError", "EnvironmentStartTimeoutError", "VerifierTimeoutError"}
"""What ends a trial while a sandbox that it asked for may still come."""


class TrialHooks:
    """Follows the trials of one backend on a queue that others may share."""

    def __init__(self, queue: TrialQueue) -> None:
        self._records: dict[str, TrialRecord] = {}
        queue.add_hook(TrialEvent.START, self._started)
        queue.add_hook(TrialEvent.AGENT_START, self._agent_begins)
        queue.add_hook(TrialEvent.AGENT_END, self._agent_ended)
        queue.add_hook(TrialEvent.VERIFICATION_START, self._verifying)
        queue.add_hook(TrialEvent.END, self._ended)

    def follow(self, trial_name: str, record: TrialRecord) -> None:
        """Report the progress of this trial to its record."""
        self._records[trial_name] = record

    def forget(self, trial_name: str) -> None:
        """Stop following a trial."""
        self._records.pop(trial_name, None)

    async def _started(self, event: TrialHookEvent) -> None:
        record = self._records.get(event.config.trial_name)
        if record is None:
            return
        record.queued_sec = time.monotonic() - record.submitted_at
        record.live.status = RolloutStatus.RUNNING
        record.is_creating = True
        record.observer.begin(ENVIRONMENT)

    async def _agent_begins(self, event: TrialHookEvent) -> None:
        if record := self._records.get(event.config.trial_name):
            record.is_creating = False
            record.observer.begin(AGENT)

    async def _agent_ended(self, event: TrialHookEvent) -> None:
        if record := self._records.get(event.config.trial_name):
            record.observer.end()

    async def _ended(self, event: TrialHookEvent) -> None:
        if record := self._records.get(event.config.trial_name):
            error = event.result.exception_info
            record.is_creating &= error is not None and error.exception_type in _GIVEN_UP
            record.observer.end(seconds_ago=_since_graded(event))

    async def _verifying(self, event: TrialHookEvent) -> None:
        record = self._records.get(event.config.trial_name)
        if record is None:
            return
        record.live.status = RolloutStatus.GRADING
        record.observer.begin(GRADING)
        if event.result.step_results is None:
            await announce_workflow(record, event)


async def announce_workflow(record: TrialRecord, event: TrialHookEvent) -> None:
    """Tell the caller, once, that the workflow's phase ended.

    Harbor awaits hooks unguarded: an error of the callback must not break the
    trial, so it is kept and raised to the caller afterwards.
    """
    if record.workflow_announced or record.on_workflow_complete is None:
        return
    record.workflow_announced = True
    result = record.workflow
    if result is None:
        result = await asyncio.to_thread(native_workflow, record, event.result)
    try:
        await record.on_workflow_complete(result)
    except Exception as exc:
        logger.debug("Rollout %s: callback failed", record.request.id, exc_info=exc)
        record.callback_error = exc


def _since_graded(event: TrialHookEvent) -> float:
    """Seconds since the verifier ended, which Harbor announces with the trial's end only."""
    steps = event.result.step_results
    timing = steps[-1].verifier if steps else event.result.verifier
    if timing is None or timing.finished_at is None:
        return 0.0
    return (event.timestamp - timing.finished_at).total_seconds()
