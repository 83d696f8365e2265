"""What the backend knows of each trial that Harbor runs for it, in this process only.

Agents, environments and verifiers are made by Harbor from a configuration that
is written to disk. They get a key in it, and find here what must not be there.
"""

import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from osmosis_ai.rollout.types.execution import ExecutionRequest, ExecutionResult
from osmosis_ai.telemetry.current import RolloutObserver, observer

if TYPE_CHECKING:
    from harbor_backend.program import Program
    from harbor_backend.skypilot.sandboxes import SkypilotSandboxes
    from osmosis_ai.gateway import Endpoint
    from osmosis_ai.rollout.backend.base import ResultCallback
    from osmosis_ai.rollout.backend.live import LiveRollout
    from osmosis_ai.rollout.context import ModelEndpoint


@dataclass
class TrialRecord:
    """One trial: what it is to do, and what came of it so far.

    ``workflow`` and ``grader`` are the phases' results as the execution core
    made them; a phase that Harbor ran by itself leaves them ``None``. ``remote``
    is set when its sandboxes are remote, and ``access`` and ``judge_access`` are
    where these find the models. ``runtime_to_upload`` is for environments that
    neither mount it nor bring it themselves, and ``is_creating`` says that Harbor
    waits for a sandbox. ``timings``, in seconds, add to Harbor's.
    """

    request: ExecutionRequest
    live: "LiveRollout"
    program: "Program"
    endpoint: "Endpoint | None" = None
    judge: "Endpoint | None" = None
    remote: "SkypilotSandboxes | None" = None
    access: "ModelEndpoint | None" = None
    judge_access: "ModelEndpoint | None" = None
    runtime_to_upload: Path | None = None
    is_creating: bool = False
    agent_timeout_sec: float | None = None
    on_workflow_complete: "ResultCallback | None" = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    submitted_at: float = field(default_factory=time.monotonic)
    queued_sec: float = 0.0
    workflow: ExecutionResult | None = None
    grader: ExecutionResult | None = None
    workflow_announced: bool = False
    callback_error: Exception | None = None
    notes: list[str] = field(default_factory=list)
    observer: RolloutObserver = field(default_factory=observer)
    timings: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _records[self.key] = self

    def note(self, text: str) -> None:
        """Keep what went wrong without deciding the result; it ends in the diagnostics."""
        if text not in self.notes:
            self.notes.append(text)

    def took(self, what: str, began: float) -> None:
        """Add the seconds since ``began``, a monotonic time, to those of this kind of work."""
        self.timings[what] = self.timings.get(what, 0.0) + time.monotonic() - began

    def close(self) -> None:
        """Forget the trial."""
        _records.pop(self.key, None)


_records: dict[str, TrialRecord] = {}


def find_trial(key: str) -> TrialRecord:
    """Return the living trial with this key.

    Raises:
        RuntimeError: there is none; the plug-ins work under ``HarborBackend`` only.
    """
    try:
        return _records[key]
    except KeyError:
        raise RuntimeError(
            "This Harbor plug-in belongs to a HarborBackend in the same process, and its trial "
            "has ended or never began"
        ) from None
