"""The sample of a native agent: the trajectory that it left, as chat messages."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harbor_backend.core.trial import Trial
from harbor_backend.places.limits import MAX_TRAJECTORY_BYTES
from harbor_backend.places.plain_file import NotPlainError, read_plain
from osmosis_ai.gateway.redaction import REDACTED
from osmosis_ai.rollout.trajectory.atif import FinalMetrics, Trajectory
from osmosis_ai.rollout.trajectory.back import messages_from_trajectory
from osmosis_ai.rollout.types.sample import RolloutSample

_SECRET_NAME = re.compile(
    r"api[-_]?key|(access|private|secret)[-_]?key|secret|passw|authorization|credential|"
    r"bearer|(^|[-_])token$",
    re.IGNORECASE,
)


class UnusableTrajectoryError(ValueError):
    """The agent left no trajectory document that makes a sample."""


def native_sample(trial: Trial, metrics: dict[str, Any]) -> RolloutSample | None:
    """Return the sample of the one ATIF document that the agent left.

    ``metrics`` are the trial's token and cost totals; the document's own fill
    what is missing. The agent that it names ends in ``extra_fields["agent"]``.
    Where there is no usable document, or more than one, there is no sample: a
    note on the trial says why, and the trial's logs are kept.
    """
    try:
        document = _document(trial.spec.trial_dir)
    except UnusableTrajectoryError as exc:
        trial.results.note(f"No sample of agent {trial.spec.program.native_agent!r}: {exc}")
        return None
    document = _redacted(document, trial, inside_extra=False)
    trajectory = Trajectory.model_validate(document)
    return RolloutSample(
        messages=messages_from_trajectory(_paired(document)),
        label=trial.spec.request.label,
        metrics={**_totals(trajectory.final_metrics), **metrics},
        extra_fields={"agent": trajectory.agent.model_dump(mode="json", exclude_none=True)},
    )


def _document(trial_dir: Path) -> dict[str, Any]:
    """Read the trial's one trajectory.

    Raises:
        UnusableTrajectoryError: there is none, there are several, or it is not ATIF.
    """
    name = "agent/trajectory.json"
    found = [*trial_dir.glob(name), *trial_dir.glob(f"steps/*/{name}")]
    if len(found) != 1:
        listed = ", ".join(sorted(str(path.relative_to(trial_dir)) for path in found))
        raise UnusableTrajectoryError(
            f"exactly one {name} is needed, and the trial has {len(found)}"
            + (f" ({listed})" if listed else "; does the agent write ATIF?")
        )
    path = found[0]
    shown = path.relative_to(trial_dir)
    try:
        document = json.loads(read_plain(path, MAX_TRAJECTORY_BYTES))
        Trajectory.model_validate(document)
    except NotPlainError as exc:
        raise UnusableTrajectoryError(f"{shown} {exc}") from exc
    except ValidationError as exc:
        problem = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, problem["loc"])) or "document"
        raise UnusableTrajectoryError(f"{shown} is not ATIF: {where}: {problem['msg']}") from exc
    except (OSError, ValueError, RecursionError) as exc:
        raise UnusableTrajectoryError(f"{shown} cannot be read: {exc}") from exc
    if not isinstance(document, dict):
        raise UnusableTrajectoryError(f"{shown} is not an object")
    return document


def _paired(document: dict[str, Any]) -> dict[str, Any]:
    """Name the call of a step's result where there is one of each and no name.

    Some of Harbor's adapters leave the name out; with several it would be a guess.
    """
    for step in document["steps"]:
        calls = step.get("tool_calls") or []
        results = (step.get("observation") or {}).get("results") or []
        if len(calls) == len(results) == 1 and results[0].get("source_call_id") is None:
            results[0]["source_call_id"] = calls[0]["tool_call_id"]
    return document


def _redacted(value: Any, trial: Trial, *, inside_extra: bool) -> Any:
    """Take the endpoint's secrets out of every text, and named ones out of every ``extra``."""
    if isinstance(value, str):
        policy = trial.spec.policy
        return value if policy is None else policy.endpoint.redact(value)
    if isinstance(value, list):
        return [_redacted(item, trial, inside_extra=inside_extra) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, item in value.items():
        if inside_extra and isinstance(item, str) and _SECRET_NAME.search(name):
            result[name] = REDACTED
        else:
            extra = inside_extra or name == "extra"
            result[name] = _redacted(item, trial, inside_extra=extra)
    return result


def _totals(final: FinalMetrics | None) -> dict[str, Any]:
    if final is None:
        return {}
    totals = {
        "input_tokens": final.total_prompt_tokens,
        "cached_tokens": final.total_cached_tokens,
        "output_tokens": final.total_completion_tokens,
        "cost_usd": final.total_cost_usd,
    }
    return {name: value for name, value in totals.items() if value is not None}
