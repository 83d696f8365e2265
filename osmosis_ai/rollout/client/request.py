"""The admission request, encoded once."""

import json
import uuid
from typing import Any, Literal, TypedDict

from osmosis_ai.common.identifiers import ensure_single_path_segment
from osmosis_ai.rollout.types.messages import MessageDict


class RolloutOptions(TypedDict, total=False):
    """What a rollout may be asked for besides its prompt and its model.

    Attributes:
        llm_api_key: bearer for the model's endpoint.
        label: what the grader compares with; the workflow never sees it.
        metadata: the row's own, for workflow and grader.
        grade: ``False`` to run without grading.
        agent_timeout_sec: seconds for the workflow; ``None`` is unbounded.
        grader_timeout_sec: seconds for the grader; ``None`` is unbounded.
        extra_fields: kept with the trajectory.
        on_interrupt: what a server that was killed does with it at its next
            start: report a failure, or run it again. Servers of this project only.
        completion_callback_url: where the end of the workflow is posted.
            Servers of the callback generation need it.
        grader_callback_url: where the graded sample is posted. That generation
            grades only if it is given.
        controller_api_key: bearer for both.
    """

    llm_api_key: str | None
    label: str | None
    metadata: dict[str, Any] | None
    grade: bool
    agent_timeout_sec: float | None
    grader_timeout_sec: float | None
    extra_fields: dict[str, Any] | None
    on_interrupt: Literal["fail", "rerun"]
    completion_callback_url: str | None
    grader_callback_url: str | None
    controller_api_key: str | None


def encode_request(
    initial_messages: list[MessageDict],
    chat_completions_url: str,
    rollout_id: str | None,
    options: RolloutOptions,
) -> tuple[str, bytes]:
    """Return the rollout's id, made up if there is none, and the body.

    Raises:
        ValueError: the id is no path segment, or the values cannot be JSON.
        TypeError: an option is not known, or not of JSON's types.
    """
    unknown = options.keys() - RolloutOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown rollout options: {', '.join(sorted(unknown))}")
    name = uuid.uuid4().hex if rollout_id is None else ensure_single_path_segment(rollout_id)
    fields = {
        "rollout_id": name,
        "initial_messages": initial_messages,
        "chat_completions_url": chat_completions_url,
        **{option: value for option, value in options.items() if value is not None},
    }
    return name, json.dumps(fields, allow_nan=False).encode()
