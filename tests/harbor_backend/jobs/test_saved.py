"""Documents of saved rollouts, whatever is in them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harbor_backend.jobs.errors import error_kind
from harbor_backend.jobs.saved import SavedRollout
from harbor_backend.jobs.usage import agent_context, calls_of
from osmosis_ai.rollout.types.status import RolloutErrorCategory
from tests.harbor_backend import reports

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEYS = st.sampled_from(
    [
        *("steps", "extra", "osmosis", "reward", "rewards", "sample_extra_fields", "source"),
        *("request_metadata", "harbor_task", "harbor_task_id", "request_extra_fields"),
        *("row_index", "metrics", "message", "unmatched_llm_call_metrics", "timings_sec", "total"),
        *("category", "phase", "prompt_tokens"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["agent", "user", "org/task@1", "/", "..", "timeout"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


@UNTIMED
@given(DOCUMENTS, DOCUMENTS, st.booleans())
def test_any_documents_are_the_end_of_a_trial(
    tmp_path_factory: pytest.TempPathFactory,
    trajectory: dict[str, Any],
    diagnostics: dict[str, Any],
    is_there: bool,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "trajectory.json").write_text(json.dumps(trajectory))
    recorded = reports.trial_result(folder) if is_there else None
    saved = SavedRollout(folder, trajectory, diagnostics, recorded)
    for tasks in (None, Path("/tasks")):
        end = saved.end(tasks)
        assert end.name == folder.name
        assert end.task.config.get_task_id().get_name()
        assert all(abs(value) < float("inf") for value in end.rewards.values())


@UNTIMED
@given(DOCUMENTS)
def test_any_trajectory_has_calls_or_none(document: dict[str, Any]) -> None:
    calls = calls_of(document)
    assert (agent_context(calls) is None) == (not calls)


@UNTIMED
@given(
    st.none() | st.sampled_from(list(RolloutErrorCategory)) | st.text(max_size=20),
    st.none() | st.sampled_from(["setup", "agent_setup", "agent", "verifier"]),
)
def test_every_failure_has_a_name(category: str | None, phase: str | None) -> None:
    assert error_kind(category, phase).endswith("Error")
