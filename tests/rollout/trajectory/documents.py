"""Building documents in tests, each checked against Harbor's own model."""

from collections.abc import Mapping, Sequence
from typing import Any

from harbor.models.trajectories import Trajectory as HarborTrajectory

from osmosis_ai.rollout.trajectory import convert_sample_to_trajectory
from osmosis_ai.rollout.types import RolloutSample


def document(
    messages: Sequence[Mapping[str, Any]], sample: Mapping[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Convert ``messages`` and return the document, which Harbor reads as we wrote it."""
    built = convert_sample_to_trajectory(
        RolloutSample(messages=[], trajectory_messages=messages, **(sample or {})),
        rollout_id="r-1",
        **options,
    ).to_json_dict()
    assert HarborTrajectory.model_validate(built).to_json_dict() == built
    return built


def call(call_id: str, name: str = "search", arguments: Any = '{"q": "x"}') -> dict[str, Any]:
    """A chat-completions tool call."""
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
