"""What a rollout server saved of a rollout, read back as the end of a trial."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from harbor.models.trial.result import TrialResult

from harbor_backend.jobs.errors import error_kind
from harbor_backend.jobs.layout import LOGS
from harbor_backend.jobs.reading import UnreadableError, as_object, objects_in, read_object
from harbor_backend.jobs.trial import recorded_result
from harbor_backend.jobs.values import JobTask, TrialEnd, TrialError
from osmosis_ai.rollout.artifacts import rollout_dir
from osmosis_ai.rollout.trajectory.save import DIAGNOSTICS, TRAJECTORY

_LEFT = (TRAJECTORY, DIAGNOSTICS, f"{LOGS}/result.json")


@dataclass(frozen=True)
class SavedRollout:
    """A rollout's directory, with what its files say."""

    directory: Path
    trajectory: Mapping[str, Any]
    diagnostics: Mapping[str, Any]
    recorded: TrialResult | None

    @property
    def agent(self) -> str | None:
        """The agent's name in Harbor's result; ``None`` where Harbor never saw it."""
        return None if self.recorded is None else self.recorded.agent_info.name

    @property
    def model(self) -> str | None:
        """The name under which the agent was told to ask for its model."""
        return None if self.recorded is None else self.recorded.config.agent.model_name

    def end(self, tasks: Path | None) -> TrialEnd:
        """What came of it, for a job over the tasks of this folder, where it is known."""
        rewards = self._rewards()
        timings = as_object(self.diagnostics.get("timings_sec"))
        seconds = timings.get("total")
        return TrialEnd(
            name=self.directory.name,
            task=self._task(tasks),
            rewards=rewards,
            error=None if rewards else self._error(),
            seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
            ended_at=self._ended_at(),
        )

    def _said(self, name: str) -> Any:
        return as_object(as_object(self.trajectory.get("extra")).get("osmosis")).get(name)

    def _rewards(self) -> dict[str, float | int]:
        if not self.trajectory:
            verified = None if self.recorded is None else self.recorded.verifier_result
            return dict((verified and verified.rewards) or {})
        several = as_object(as_object(self._said("sample_extra_fields")).get("rewards"))
        found = several or {"reward": self._said("reward")}
        return {name: value for name, value in found.items() if _is_number(value)}

    def _error(self) -> TrialError | None:
        category, phase = self.diagnostics.get("category"), self.diagnostics.get("phase")
        if category is None and (self.trajectory or self.recorded is not None):
            return None  # not graded, or Harbor recorded why
        kind = error_kind(None if category is None else str(category), str(phase))
        return TrialError(kind, f"it ended in the phase {phase!r}; the server's record has more")

    def _ended_at(self) -> datetime:
        written = [self.directory / name for name in _LEFT]
        latest = max(path.stat().st_mtime for path in written if path.is_file())
        return datetime.fromtimestamp(latest, UTC)

    def _task(self, tasks: Path | None) -> JobTask:
        """The task that it was an attempt at: a Harbor task, or else its prompt."""
        metadata = as_object(self._said("request_metadata"))
        named = metadata.get("harbor_task_id") or metadata.get("harbor_task")
        if isinstance(named, str) and named:
            return _harbor_task(named, tasks)
        if self.recorded is None:
            return JobTask(Path(self._prompt_name()), group=self._prompt_name())
        template = _directory_name(self.recorded)
        if not self.trajectory:
            return _harbor_task(template, tasks)
        is_template = tasks is not None and (tasks / "task.toml").is_file()
        path = tasks if is_template and tasks is not None else Path(template)
        return JobTask(path, group=f"{template}-{self._prompt_name()}")

    def _prompt_name(self) -> str:
        """A name that all attempts at one prompt share, and no other has."""
        row = as_object(self._said("request_extra_fields")).get("row_index")
        if isinstance(row, int):
            return f"row-{row}"
        asked = []
        for step in objects_in(self.trajectory.get("steps")):
            if step.get("source") == "agent":
                break
            asked.append([step.get("source"), step.get("message")])
        what = [asked, self._said("label"), self._said("request_metadata")]
        text = json.dumps(what, sort_keys=True)
        return f"prompt-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def saved_ids(root: Path) -> list[str]:
    """The rollouts that left something in a server's folder, by name."""
    return sorted(
        entry.name
        for entry in root.iterdir()
        if not entry.name.startswith(".")
        and entry.is_dir()
        and any((entry / name).is_file() for name in _LEFT)
    )


def read_saved(root: Path, rollout_id: str) -> SavedRollout:
    """Read what one rollout left.

    Raises:
        ValueError: it is no rollout's id, or one of its documents is none.
        OSError: one cannot be read.
    """
    directory = rollout_dir(root, rollout_id)
    if not any((directory / name).is_file() for name in _LEFT):
        raise UnreadableError(f"{directory} holds nothing of a rollout that ended")
    return SavedRollout(
        directory,
        read_object(directory / TRAJECTORY) or {},
        read_object(directory / DIAGNOSTICS) or {},
        recorded_result(directory),
    )


def _harbor_task(named: str, tasks: Path | None) -> JobTask:
    """A task by its id, by its path, or by its package's name and version."""
    if named.startswith((".", "/", "~")):
        return JobTask(Path(named).expanduser().absolute())
    name = PurePosixPath(named.partition("@")[0]).name or "unnamed"
    if tasks is None:
        return JobTask(Path(name))
    if (tasks / "task.toml").is_file() and tasks.name == name:
        return JobTask(tasks, tasks.parent.name)
    return JobTask(tasks / name, tasks.name)


def _directory_name(recorded: TrialResult) -> str:
    """The task's directory, of which Harbor ran a copy."""
    path = recorded.config.task.path
    return recorded.task_name if path is None else path.name


def _is_number(value: Any) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and math.isfinite(value)
