"""The Harbor agent that runs an ``AgentWorkflow`` inside the trial's sandbox."""

from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from harbor_backend.phases import AGENT, run_phase
from harbor_backend.ready import make_ready
from harbor_backend.trials import TrialRecord, find_trial
from osmosis_ai import __version__
from osmosis_ai.rollout.container.files import GATEWAY_SOCKET, ContainerInput
from osmosis_ai.rollout.execution import with_label
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus


class WorkflowFailedError(Exception):
    """Ends a trial whose workflow failed: there is nothing to verify."""


class WorkflowAgent(BaseAgent):
    """Runs the workflow of the trial's bundle; a multi-step task calls it once per step."""

    def __init__(self, logs_dir: Path, trial_key: str, **kwargs: Any) -> None:
        super().__init__(logs_dir=logs_dir, **kwargs)
        self._trial_key = trial_key

    @staticmethod
    def name() -> str:
        """The agent's name in Harbor's results."""
        return "osmosis-workflow"

    def version(self) -> str:
        """The version of the SDK."""
        return str(__version__)

    async def setup(self, environment: BaseEnvironment) -> None:
        """Have the runtime there, and the way to the model."""
        await make_ready(environment, find_trial(self._trial_key), probe=True)

    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """Run the workflow and keep its result on the trial's record.

        Raises:
            WorkflowFailedError: it failed; the result says how.
        """
        record = find_trial(self._trial_key)
        task = _task(record, instruction)
        result = await run_phase(environment, AGENT, task, self.logs_dir / "workflow.log")
        result = with_label(result, record.request.label)
        record.workflow = _joined(record.workflow, result)
        if result.status is not RolloutStatus.SUCCESS:
            # Harbor writes the text to a UTF-8 file; the result itself stays as it is.
            text = str(result.err_message).encode("utf-8", "backslashreplace").decode()
            raise WorkflowFailedError(text)


def _task(record: TrialRecord, instruction: str) -> ContainerInput:
    entry_points = record.program.entry_points
    if entry_points is None:
        raise RuntimeError("a workflow trial needs entry points")
    request, access = record.request, record.access
    has_socket = record.endpoint is not None and access is None
    return ContainerInput(
        rollout_id=request.id,
        prompt=request.prompt or [{"role": "user", "content": instruction}],
        metadata=request.metadata,
        gateway_socket=GATEWAY_SOCKET if has_socket else None,
        chat_completions_url="" if access is None else access.url,
        api_key=None if access is None else access.api_key,
        agent_timeout_sec=record.agent_timeout_sec,
        queued_sec=record.queued_sec,
        workflow=entry_points.agent,
        workflow_config=entry_points.workflow_config,
    )


def _joined(earlier: ExecutionResult | None, result: ExecutionResult) -> ExecutionResult:
    """Append a later step's sample to the earlier steps'."""
    if earlier is None or earlier.sample is None or result.sample is None:
        return result
    first, last = earlier.sample, result.sample
    trajectories = (first.trajectory_messages, last.trajectory_messages)
    sample = last.model_copy(
        update={
            "messages": [*first.messages, *last.messages],
            "trajectory_messages": (
                None
                if trajectories[0] is None or trajectories[1] is None
                else [*trajectories[0], *trajectories[1]]
            ),
            "metrics": {**first.metrics, **last.metrics},
            "extra_fields": {**first.extra_fields, **last.extra_fields},
        }
    )
    return result.model_copy(update={"sample": sample})
