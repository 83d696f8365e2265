"""The graded sample that one rollout produces."""

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, field_serializer

from osmosis_ai.rollout.types.json_safe import drop_unencodable, is_encoded, to_json_value

logger = logging.getLogger(__name__)


class RolloutSample(BaseModel):
    """Message history plus reward.

    ``messages`` is the framework's own history, which graders read.
    ``trajectory_messages`` is a chat-completions-shaped copy for persistence:
    when it is not given, ``messages`` are copied; an explicit ``None`` means
    that no trajectory is saved. In JSON, whatever a message holds is there, what
    is not JSON's as text; telemetry loses it.
    """

    model_config = ConfigDict(validate_assignment=True, arbitrary_types_allowed=True)

    messages: Sequence[Mapping[str, Any]] = []
    trajectory_messages: Sequence[Mapping[str, Any]] | None = None
    label: str | None = None
    reward: FiniteFloat | None = None
    remove_sample: bool = False
    metrics: dict[str, Any] = {}
    extra_fields: dict[str, Any] = {}

    @field_serializer("messages", "trajectory_messages", "label", when_used="json")
    def _in_json(self, value: object) -> Any:
        return to_json_value(value)

    @field_serializer("metrics", "extra_fields", when_used="json")
    def _telemetry_in_json(self, value: Mapping[str, Any]) -> Any:
        return to_json_value(drop_unencodable(value, set()))

    def model_post_init(self, context: Any, /) -> None:
        """Take the trajectory's own copy of the messages when none was given."""
        if "trajectory_messages" in self.model_fields_set:
            return
        try:
            snapshot = copy.deepcopy(list(self.messages))
        except Exception as exc:
            logger.warning("Failed to snapshot messages for trajectory persistence: %s", exc)
            snapshot = None
        self.__dict__["trajectory_messages"] = snapshot

    def json_safe_copy(self) -> "RolloutSample":
        """Return a sample whose ``metrics`` and ``extra_fields`` encode as JSON.

        What cannot be encoded is dropped and named in one warning; returns
        ``self`` when nothing has to change. Messages are left as they are.
        """
        if is_encoded(self.metrics) and is_encoded(self.extra_fields):
            return self
        dropped: set[str] = set()
        metrics = drop_unencodable(self.metrics, dropped)
        extra_fields = drop_unencodable(self.extra_fields, dropped)
        if dropped:
            logger.warning(
                "Dropped sample telemetry that JSON cannot hold: %s", ", ".join(sorted(dropped))
            )
        return self.model_copy(update={"metrics": metrics, "extra_fields": extra_fields})
