"""One sample as a whole ATIF document."""

from collections.abc import Mapping, Sequence
from typing import Any

from osmosis_ai import __version__
from osmosis_ai.rollout.trajectory.atif import Agent, Trajectory
from osmosis_ai.rollout.trajectory.convert import messages_to_steps
from osmosis_ai.rollout.trajectory.merge import merge_report
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics, TrajectoryReport
from osmosis_ai.rollout.types.json_safe import to_json_value
from osmosis_ai.rollout.types.sample import RolloutSample

AGENT_NAME = "osmosis-rollout-sdk"


def convert_sample_to_trajectory(
    sample: RolloutSample,
    *,
    rollout_id: str,
    request_label: str | None = None,
    request_metadata: Mapping[str, Any] | None = None,
    request_extra_fields: Mapping[str, Any] | None = None,
    report: TrajectoryReport | None = None,
    llm_calls: Sequence[LlmCallMetrics | Mapping[str, Any]] | None = None,
) -> Trajectory:
    """Build the document for one sample from its ``trajectory_messages``.

    Raises:
        ValueError: ``trajectory_messages`` is ``None``, which asks for no document.
    """
    messages = sample.trajectory_messages
    if messages is None:
        raise ValueError(
            "sample.trajectory_messages is None, so this sample has no trajectory; set it to "
            "chat-completions messages"
        )
    steps = messages_to_steps(messages)
    merged = merge_report(steps, report, llm_calls)
    notes = None
    if not messages:
        merged.final_metrics.total_steps = 0
        notes = "The sample has no messages; the one step stands for them."
    osmosis = {
        "rollout_id": rollout_id,
        "label": request_label if sample.label is None else sample.label,
        "reward": sample.reward,
        "sample_metrics": sample.metrics,
        "sample_extra_fields": sample.extra_fields,
        "request_metadata": request_metadata,
        "request_extra_fields": request_extra_fields,
        **merged.unmatched,
    }
    identity = to_json_value(rollout_id)
    return Trajectory(
        session_id=identity,
        trajectory_id=identity,
        agent=Agent(name=AGENT_NAME, version=__version__, model_name=merged.model_name),
        steps=steps,
        notes=notes,
        final_metrics=merged.final_metrics,
        extra={"osmosis": to_json_value({k: v for k, v in osmosis.items() if v is not None})},
    )
