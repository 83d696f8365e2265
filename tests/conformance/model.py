"""What a case is, and what it expects."""

import re
from dataclasses import dataclass, field
from typing import Any

from osmosis_ai.rollout import (
    ExecutionRequest,
    RolloutErrorCategory,
    RolloutSample,
    RolloutStatus,
)

PROJECT_PACKAGE = "conformance_rollout"

PROMPT: list[dict[str, Any]] = [{"role": "user", "content": "What is 2 + 2?"}]
DONE: dict[str, Any] = {"role": "assistant", "content": "4"}
HISTORY = [*PROMPT, DONE]
LABEL = "4"

VALIDATION = RolloutErrorCategory.VALIDATION_ERROR
TIMEOUT = RolloutErrorCategory.TIMEOUT
AGENT = RolloutErrorCategory.AGENT_ERROR


@dataclass(frozen=True)
class Phase:
    """One phase's result. A pattern must match the whole message."""

    status: RolloutStatus
    sample: RolloutSample | None = None
    message: str | re.Pattern[str] | None = None
    category: RolloutErrorCategory | None = None


@dataclass(frozen=True)
class Case:
    """One behaviour.

    ``workflow`` and ``grader`` are ``"module:Class"`` and the configs
    ``"module:name"``, in the package of ``tests/projects/conformance``.
    ``request`` overrides fields of the request; its prompt, label and id have
    defaults. ``runs`` executions follow each other on one backend, of which the
    last is compared. ``artifacts`` are the regular files that the host holds
    afterwards, path to content; ``None`` does not look.
    """

    id: str
    workflow: str
    expected: Phase
    grader: str | None = None
    graded: Phase | None = None
    workflow_config: str | None = None
    grader_config: str | None = None
    request: dict[str, Any] = field(default_factory=dict)
    runs: int = 1
    artifacts: dict[str, bytes] | None = None

    def requests(self) -> list[ExecutionRequest]:
        """The requests of all runs; they share the values of ``request``, as a caller's would."""
        rollout_id = self.request.get("id", self.id)
        fields = {"prompt": PROMPT, "label": LABEL, **self.request}
        return [
            ExecutionRequest.model_validate(
                {**fields, "id": rollout_id if run == self.runs else f"{rollout_id}-{run}"}
            )
            for run in range(1, self.runs + 1)
        ]


def path(name: str | None) -> str | None:
    """The import string of ``module:attr`` in the project's package."""
    return None if name is None else f"{PROJECT_PACKAGE}.{name}"


def sample(messages: list[dict[str, Any]] = HISTORY, **fields: Any) -> RolloutSample:
    """A sample that carries the request's label unless told otherwise."""
    return RolloutSample(messages=messages, **{"label": LABEL, **fields})


def said(content: Any, **fields: Any) -> RolloutSample:
    """A sample of one assistant message."""
    return sample([{"role": "assistant", "content": content}], **fields)


def ok(of: RolloutSample | None = None) -> Phase:
    """A success with this sample (by default the plain history)."""
    return Phase(RolloutStatus.SUCCESS, sample=of if of is not None else sample())


def failed(
    category: RolloutErrorCategory,
    message: str | re.Pattern[str],
    of: RolloutSample | None = None,
) -> Phase:
    """A failure with this category, message and sample."""
    return Phase(RolloutStatus.FAILURE, sample=of, message=message, category=category)


def matches(pattern: str) -> re.Pattern[str]:
    """A message whose whole text, over lines, matches ``pattern``."""
    return re.compile(pattern, re.DOTALL)
