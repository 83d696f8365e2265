"""What ``AgentWorkflow.run()`` may return, and how it becomes one shape."""

from typing import Any

from pydantic import BaseModel, ConfigDict, FiniteFloat

from osmosis_ai.rollout.types.messages import Messages


class AgentWorkflowOutput(BaseModel):
    """The explicit result of a workflow run.

    ``messages`` becomes the sample (``None``: no sample, ``[]``: a sample with
    no messages), ``metrics`` are finite numbers attached to it. ``info`` is
    reserved and does not reach graders.
    """

    model_config = ConfigDict(extra="forbid", revalidate_instances="always")

    messages: Messages | None = None
    metrics: dict[str, FiniteFloat] = {}
    info: dict[str, Any] = {}


def coerce_output(value: object) -> AgentWorkflowOutput | None:
    """Normalise the return value of ``run()``.

    Returns ``None`` for ``None``: the sample then comes from the source that is
    registered on the rollout context. An output object is validated again, so
    mutation after construction cannot smuggle a NaN through.

    Raises:
        TypeError: the value is none of the three documented shapes.
        pydantic.ValidationError: the output's fields are not valid.
    """
    if value is None:
        return None
    if isinstance(value, AgentWorkflowOutput):
        # model_construct() and in-place mutation skip validation; a dump keeps every
        # attribute, also those that validation would have refused.
        return AgentWorkflowOutput.model_validate(
            {**value.__dict__, **(value.__pydantic_extra__ or {})}
        )
    if isinstance(value, list):
        return AgentWorkflowOutput(messages=value)
    raise TypeError(
        "AgentWorkflow.run() must return AgentWorkflowOutput, a list of messages or None, "
        f"not {type(value).__name__}"
    )
