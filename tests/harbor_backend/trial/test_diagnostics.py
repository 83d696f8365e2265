"""What an operator is told of a trial beside its outcome."""

import time
from pathlib import Path
from typing import Any

import pytest

from harbor_backend.program.program import Program
from harbor_backend.trial.diagnostics import diagnostics
from osmosis_ai.rollout.types.status import RolloutErrorCategory
from tests.harbor_backend.reports import at, error, reached, step, timing, trial_result
from tests.harbor_backend.specs import living, make_spec, native_program, workflow_program

WORKFLOW = workflow_program()
NATIVE = native_program("oracle")
QUIET: dict[str, Any] = {
    "backend": "harbor",
    "environment": "osmosis-docker",
    "phase": "setup",
    "harbor_exception_type": None,
    "category": None,
    "timings_sec": {"queued": 0.25},
    "runs": 0,
    "notes": [],
    "integrity": None,
}

CASES: dict[str, tuple[Program, dict[str, Any], dict[str, Any]]] = {
    # of which program, what Harbor reports, what differs from QUIET
    "nothing began": (WORKFLOW, {}, {}),
    "everything went well": (
        WORKFLOW,
        {**reached("verifier"), "started_at": at(0), "finished_at": at(36.5)},
        {
            "phase": "verifier",
            "timings_sec": {
                "queued": 0.25,
                "environment_setup": 5.0,
                "agent_setup": 5.0,
                "agent": 5.0,
                "verifier": 5.0,
                "total": 36.5,
            },
        },
    ),
    "a phase that did not end has no seconds": (
        WORKFLOW,
        {"environment_setup": timing(0, 2), "agent_setup": timing(3), "started_at": at(0)},
        {"phase": "agent_setup", "timings_sec": {"queued": 0.25, "environment_setup": 2.0}},
    ),
    "a workflow's phase that broke is the sandbox's fault": (
        WORKFLOW,
        {"agent_execution": timing(0, 2), "exception_info": error("OSError")},
        {
            "phase": "agent",
            "harbor_exception_type": "OSError",
            "category": RolloutErrorCategory.INFRASTRUCTURE_ERROR,
            "timings_sec": {"queued": 0.25, "agent": 2.0},
        },
    ),
    "a native agent's is its own": (
        NATIVE,
        {"agent_execution": timing(0, 2), "exception_info": error("OSError")},
        {
            "phase": "agent",
            "harbor_exception_type": "OSError",
            "category": RolloutErrorCategory.AGENT_ERROR,
            "timings_sec": {"queued": 0.25, "agent": 2.0},
        },
    ),
    "a deadline": (
        NATIVE,
        {"verifier": timing(0, 2), "exception_info": error("VerifierTimeoutError")},
        {
            "phase": "verifier",
            "harbor_exception_type": "VerifierTimeoutError",
            "category": RolloutErrorCategory.TIMEOUT,
            "timings_sec": {"queued": 0.25, "verifier": 2.0},
        },
    ),
    "steps are summed": (
        WORKFLOW,
        {
            "step_results": [
                step("one", agent_execution=timing(0, 2), verifier=timing(2, 3)),
                step("two", agent_execution=timing(4, 8)),
            ]
        },
        {"phase": "agent", "timings_sec": {"queued": 0.25, "agent": 6.0, "verifier": 1.0}},
    ),
    "the trial's own seconds win over its steps'": (
        WORKFLOW,
        {
            "agent_execution": timing(0, 9),
            "step_results": [step("one", agent_execution=timing(0, 2))],
        },
        {"phase": "agent", "timings_sec": {"queued": 0.25, "agent": 9.0}},
    ),
    "steps that did not end": (
        WORKFLOW,
        {"step_results": [step("one", agent_execution=timing(0))]},
        {"phase": "agent"},
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_what_is_reported(case: str, tmp_path: Path) -> None:
    program, fields, expected = CASES[case]
    async with living(make_spec(tmp_path, program=program)) as trial:
        trial.results.queued_sec = 0.25
        report = diagnostics(trial, trial_result(tmp_path, **fields), "osmosis-docker")
    assert report == {**QUIET, **expected}


async def test_notes_and_timings_of_our_own_are_among_them(tmp_path: Path) -> None:
    async with living(make_spec(tmp_path)) as trial:
        for text in ("first", "second", "first"):
            trial.results.note(text)
        for _ in range(2):
            trial.results.took("runtime_upload", time.monotonic() - 5)
        report = diagnostics(trial, trial_result(tmp_path), "skypilot")
    assert report["notes"] == ["first", "second"]
    assert report["timings_sec"].pop("runtime_upload") == pytest.approx(10, abs=1)
    assert report["timings_sec"] == {"queued": 0.0}
    assert report["environment"] == "skypilot"
