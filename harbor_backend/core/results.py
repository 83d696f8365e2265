"""What comes back of a trial; each field has one writer."""

import time
from typing import TYPE_CHECKING, Any

from osmosis_ai.common.texts import bounded_notes, note_text

if TYPE_CHECKING:
    from harbor.models.trial.result import ExceptionInfo

    from osmosis_ai.rollout.types.execution import ExecutionResult


class TrialResults:
    """What the plug-ins and hooks of a trial bring back.

    - ``workflow``: the workflow's result, by the workflow agent;
    - ``grader``: the SDK grader's result, by the grader's verifier;
    - ``verifier_error``: what ended the verifier of the task's tests, by itself. Harbor keeps
      a trial's first exception alone, which may have been the agent's;
    - ``integrity``: what could have decided over the task's tests, by the task's verifier;
    - ``queued_sec``: how long it waited for a slot, by the hooks;
    - ``runs``: how often Harbor's queue began it, by the hooks, through ``began``.

    A phase that Harbor ran by itself leaves its result ``None``. Anybody may add
    a note or a timing.
    """

    def __init__(self) -> None:
        self.workflow: ExecutionResult | None = None
        self.grader: ExecutionResult | None = None
        self.verifier_error: ExceptionInfo | None = None
        self.integrity: dict[str, Any] | None = None
        self.queued_sec = 0.0
        self.runs = 0
        self._notes: dict[str, None] = {}
        self._timings: dict[str, float] = {}

    def began(self) -> None:
        """Harbor's queue begins the trial, or begins it again; nothing of the run before counts."""
        self.runs += 1
        self.workflow = self.grader = self.verifier_error = self.integrity = None

    @property
    def notes(self) -> list[str]:
        """What went wrong without deciding the result, each once."""
        return bounded_notes(self._notes)

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by kind of work; they add to Harbor's."""
        return dict(self._timings)

    def note(self, text: str) -> None:
        """Keep what went wrong without deciding the result; it ends in the diagnostics."""
        self._notes.setdefault(note_text(text))

    def took(self, what: str, began: float) -> None:
        """Add the seconds since ``began``, a monotonic time, to those of this kind of work."""
        self._timings[what] = self._timings.get(what, 0.0) + time.monotonic() - began


class SandboxWait:
    """Whether a trial waits for a sandbox that was asked for: one may come when nobody waits."""

    def __init__(self) -> None:
        self._waits = False

    def __bool__(self) -> bool:
        return self._waits

    def asked(self) -> None:
        """A sandbox was asked for."""
        self._waits = True

    def over(self) -> None:
        """It came, or it is known that none comes."""
        self._waits = False
