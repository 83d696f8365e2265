"""Telling a person how the trials are getting on, on standard error."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self

from osmosis_ai.cli.output import cause, duration, say, talk_console
from osmosis_ai.cli.trials.plan import Trial
from osmosis_ai.cli.trials.results import TrialReport, mean_reward

if TYPE_CHECKING:
    from rich.console import RenderableType

type StatusOf = Callable[[str], str]

_SHOWN = 12


class Progress(Protocol):
    """What the run reports to."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    def started(self, trial: Trial) -> None:
        """A trial was handed to the backend."""

    def finished(self, report: TrialReport) -> None:
        """A trial ended."""


def make_progress(total: int, status_of: StatusOf) -> Progress:
    """A live display on a terminal, plain lines elsewhere."""
    return LiveProgress(total, status_of) if sys.stderr.isatty() else PlainProgress(total)


class PlainProgress:
    """One line per finished trial."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is held."""

    def started(self, trial: Trial) -> None:
        """Nothing is said."""

    def finished(self, report: TrialReport) -> None:
        """Print the line."""
        self._done += 1
        say(f"[{self._done}/{self._total}] {summary(report)}")


class LiveProgress:
    """A bar, and what every running trial is at."""

    def __init__(self, total: int, status_of: StatusOf) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._status_of = status_of
        self._running: dict[str, tuple[Trial, float]] = {}
        self._reports: list[TrialReport] = []
        console = talk_console()
        self._bar = Bar(
            TextColumn("trials"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[mean]}"),
            console=console,
        )
        self._row = self._bar.add_task("trials", total=total, mean="")
        self._live = Live(
            console=console, get_renderable=self._draw, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.__exit__(None, None, None)

    def started(self, trial: Trial) -> None:
        """Show the trial."""
        self._running[trial.rollout_id] = (trial, time.monotonic())

    def finished(self, report: TrialReport) -> None:
        """Move the bar, and leave a line above it."""
        self._running.pop(report.trial.rollout_id, None)
        self._reports.append(report)
        mean = mean_reward(self._reports)
        self._bar.update(self._row, advance=1, mean="" if mean is None else f"mean {mean:.3f}")
        self._live.console.print(summary(report))

    def _draw(self) -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        # Drawn by a thread of the display's own, while the loop adds and removes trials.
        running = list(self._running.values())
        now = time.monotonic()
        lines = [
            Text(
                f"  {trial.task} #{trial.attempt}  {self._status_of(trial.rollout_id)}  "
                f"{duration(now - since)}",
                style="dim",
            )
            for trial, since in running[:_SHOWN]
        ]
        return Group(self._bar, *lines)


def summary(report: TrialReport) -> str:
    """One line about a finished trial."""
    reward = "no reward" if report.reward is None else f"reward {report.reward:g}"
    what = f"{report.trial.task} #{report.trial.attempt}: {reward}, {duration(report.seconds)}"
    if report.category is None:
        return what
    return f"{what}, {report.category}: {cause(report.message or '')}"
