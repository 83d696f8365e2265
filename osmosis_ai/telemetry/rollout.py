"""What is known of one rollout while it runs."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from osmosis_ai.common.observer import QUEUE, ModelCall
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus
from osmosis_ai.telemetry.harmless import harmless

if TYPE_CHECKING:
    from osmosis_ai.telemetry.spans import RolloutSpans

HANDED_OVER = "handed_over"


class Metrics(Protocol):
    """Somewhere that numbers go."""

    def rollout_ended(self, status: str, category: str, seconds: float | None) -> None:
        """Count an outcome."""

    def phase_ended(self, phase: str, seconds: float) -> None:
        """Count a phase."""

    def model_call(self, call: ModelCall) -> None:
        """Count a model call."""

    def loop_lag(self, seconds: float) -> None:
        """Count one look at the event loop."""


class RolloutTelemetry:
    """Observes one rollout; see ``RolloutObserver``. Made by ``Telemetry.rollout``."""

    def __init__(
        self, metrics: list[Metrics], spans: Callable[[int], "RolloutSpans"] | None = None
    ) -> None:
        self._metrics = metrics
        self._began_ns = time.time_ns()
        self._began = time.perf_counter()
        self._phase: tuple[str, float] | None = None
        self._outcome: tuple[str, str] | None = None
        self._closed = False
        self.spans: RolloutSpans | None = None
        if spans is not None:
            self._open(spans)

    @property
    def queued(self) -> bool:
        """Whether the rollout waits for a slot."""
        return self._phase is not None and self._phase[0] == QUEUE

    @harmless
    def begin(self, phase: str) -> None:
        """A phase begins, and the one before it ends; a phase that goes on just does."""
        if self._closed or (self._phase is not None and self._phase[0] == phase):
            return
        self._end(None)
        now = time.perf_counter()
        self._phase = (phase, now)
        if self.spans is not None:
            self.spans.begin(phase, self._ns(now))

    @harmless
    def end(self, error: str | None = None, *, seconds_ago: float = 0.0) -> None:
        """The phase ended; ``error`` is the kind of failure in one word."""
        self._end(error, seconds_ago)

    @harmless
    def model_call(self, call: ModelCall) -> None:
        """A model call ended."""
        for metrics in self._metrics:
            metrics.model_call(call)
        if self.spans is not None:
            self.spans.model_call(call)

    @harmless
    def outcome(self, result: ExecutionResult) -> None:
        """How the rollout ended; the last one told before the block's end counts."""
        self._outcome = outcome_labels(result)

    @harmless
    def handed_over(self) -> None:
        """It did not end: it goes on at another server, or in a later life of this one."""
        self._outcome = (HANDED_OVER, "")

    @harmless
    def close(self, error: BaseException | None = None) -> None:
        """The rollout ended; without an outcome it was cut off by ``error``."""
        if self._closed:
            return
        self._end(None if error is None else type(error).__name__)
        self._closed = True
        status, category = self._outcome or _cut_off(error)
        now = time.perf_counter()
        for metrics in self._metrics:
            metrics.rollout_ended(status, category, now - self._began)
        if self.spans is not None:
            failed = status not in (RolloutStatus.SUCCESS, HANDED_OVER)
            self.spans.close(self._ns(now), status, (category or status) if failed else None)

    @harmless
    def _open(self, spans: Callable[[int], "RolloutSpans"]) -> None:
        self.spans = spans(self._began_ns)

    def _end(self, error: str | None, seconds_ago: float = 0.0) -> None:
        if self._phase is None:
            return
        (phase, began), self._phase = self._phase, None
        ended = max(time.perf_counter() - max(seconds_ago, 0.0), began)
        for metrics in self._metrics:
            metrics.phase_ended(phase, ended - began)
        if self.spans is not None:
            self.spans.end(self._ns(ended), error)

    def _ns(self, moment: float) -> int:
        # A wall clock that is set back must not make a span end before it began.
        return self._began_ns + int((moment - self._began) * 1e9)


def outcome_labels(result: ExecutionResult) -> tuple[str, str]:
    """Status and category, the latter empty when there is none."""
    category = result.err_category
    return result.status.value, "" if category is None else category.value


def _cut_off(error: BaseException | None) -> tuple[str, str]:
    if error is not None and not isinstance(error, Exception):
        return RolloutStatus.CANCELLED.value, ""
    return RolloutStatus.FAILURE.value, RolloutErrorCategory.INTERNAL_ERROR.value
