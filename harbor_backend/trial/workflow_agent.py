"""The Harbor agent that runs an ``AgentWorkflow`` inside the trial's sandbox."""

from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from harbor_backend.core.phases import AGENT
from harbor_backend.core.policy import graded_failure, is_the_agents
from harbor_backend.core.trial import Trial, find_trial
from harbor_backend.errors import WorkflowFailedError
from harbor_backend.places.sandbox import ModelRoute, Role, Sandbox, sandbox_of
from harbor_backend.trial.phase import run_phase
from osmosis_ai import __version__
from osmosis_ai.rollout.backend.believed import believed, upstream_failed
from osmosis_ai.rollout.container.files import GATEWAY_SOCKET, ContainerInput
from osmosis_ai.rollout.execution import with_label
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus


class WorkflowAgent(BaseAgent):
    """Runs the workflow of the trial's bundle; a multi-step task calls it once per step."""

    def __init__(self, logs_dir: Path, trial_key: str, **kwargs: Any) -> None:
        super().__init__(logs_dir=logs_dir, **kwargs)
        self._trial = find_trial(trial_key)
        self._sandbox: Sandbox | None = None
        self._route = ModelRoute()

    @staticmethod
    def name() -> str:
        """The agent's name in Harbor's results."""
        return "osmosis-workflow"

    def version(self) -> str:
        """The version of the SDK."""
        return str(__version__)

    async def set_web_tools_disabled(self, disabled: bool, environment: BaseEnvironment) -> None:
        """A workflow has no web tools of Harbor's that a network policy could switch off."""

    async def setup(self, environment: BaseEnvironment) -> None:
        """Have the runtime there, and the way to the model."""
        self._trial.sandbox_wait.over()
        self._sandbox = sandbox_of(environment, self._trial, Role.AGENT)
        await self._sandbox.make_ready()
        if self._trial.spec.policy is not None:
            self._route = await self._sandbox.serve_model(self._trial.spec.policy, GATEWAY_SOCKET)

    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """Run the workflow and keep its result on the trial.

        Raises:
            WorkflowFailedError: it failed; the result says how.
            NonZeroAgentExitCodeError: so it did, and the task's tests grade its work.
        """
        if self._sandbox is None:
            raise RuntimeError("a workflow runs after its agent was set up")
        # Without it, Harbor looks for it in whatever the sandbox left as trajectory.json.
        context.model_usage = {}
        trial = self._trial
        task = _task(trial, instruction, self._route)
        result = await run_phase(
            self._sandbox, AGENT, task, self.logs_dir / "workflow.log", trial.spec.max_result_bytes
        )
        endpoint = None if trial.spec.policy is None else trial.spec.policy.endpoint
        result = believed(
            result,
            service_failed=upstream_failed(endpoint),
            workflow_rewards=trial.spec.workflow_rewards,
        )
        result = with_label(result, trial.spec.request.label)
        trial.results.workflow = _joined(trial.results.workflow, result)
        if result.status is not RolloutStatus.SUCCESS:
            # Harbor writes the text to a UTF-8 file; the result itself stays as it is.
            text = str(result.err_message).encode("utf-8", "backslashreplace").decode()
            if trial.spec.is_graded_by_task and is_the_agents(result):
                raise graded_failure(result, text)
            raise WorkflowFailedError(text)


def _task(trial: Trial, instruction: str, route: ModelRoute) -> ContainerInput:
    entry_points = trial.spec.program.entry_points
    if entry_points is None:
        raise RuntimeError("a workflow trial needs entry points")
    request = trial.spec.request
    return ContainerInput(
        rollout_id=request.id,
        prompt=request.prompt or [{"role": "user", "content": instruction}],
        metadata=request.metadata,
        gateway_socket=route.socket,
        chat_completions_url=route.url,
        api_key=route.api_key,
        agent_timeout_sec=trial.spec.agent_timeout_sec,
        queued_sec=trial.results.queued_sec,
        workflow=entry_points.agent,
        workflow_config=entry_points.workflow_config,
    )


def _joined(earlier: ExecutionResult | None, result: ExecutionResult) -> ExecutionResult:
    """Append a later step's sample to the earlier steps'; the first failure of a step stays."""
    if earlier is None:
        return result
    if earlier.status is not RolloutStatus.SUCCESS:
        fields = ("status", "err_message", "err_category")
        result = result.model_copy(update={name: getattr(earlier, name) for name in fields})
    if earlier.sample is None or result.sample is None:
        return result.model_copy(update={"sample": result.sample or earlier.sample})
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
