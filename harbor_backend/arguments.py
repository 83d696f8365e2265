"""Checks of ``HarborBackend``'s arguments that concern no other part."""

from typing import Any

from harbor_backend.program.program import Program
from osmosis_ai.rollout.container.files import MAX_INPUT_BYTES


def check_arguments(
    program: Program,
    *,
    native_agent_kwargs: dict[str, Any] | None,
    grader_sandbox: str,
    max_queue_depth: int | None,
    max_result_bytes: int,
    patch_dockerfile_with_sdk: bool | None,
) -> None:
    """Pass when these arguments can work.

    Raises:
        ValueError: one cannot; the text names it, its value and the remedy.
    """
    if native_agent_kwargs and program.native_agent is None:
        raise ValueError("native_agent_kwargs= needs a native agent, and agent= is a workflow")
    if grader_sandbox not in {"fresh", "shared"}:
        raise ValueError(f"grader_sandbox={grader_sandbox!r} must be 'fresh' or 'shared'")
    if max_queue_depth is not None and max_queue_depth < 1:
        raise ValueError(f"max_queue_depth must be at least 1 or None, got {max_queue_depth}")
    if not 0 < max_result_bytes <= MAX_INPUT_BYTES:
        raise ValueError(
            f"max_result_bytes must be from 1 to {MAX_INPUT_BYTES}, got {max_result_bytes}"
        )
    if patch_dockerfile_with_sdk:
        raise ValueError(
            "patch_dockerfile_with_sdk=True is not needed and not supported: the SDK is "
            "mounted into the sandbox at /opt/osmosis, and task images stay as they are"
        )
