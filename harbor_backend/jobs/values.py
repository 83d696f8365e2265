"""What a job directory is made of, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from harbor.models.trial.config import EnvironmentConfig, TaskConfig

from osmosis_ai.rollout.trajectory.report import LlmCallMetrics

WORKFLOW = "osmosis-workflow"
"""The name in Harbor's results of an agent that is a workflow."""


@dataclass(frozen=True)
class JobTask:
    """A task of a job.

    Attributes:
        path: its directory; only a name where nobody knows where it lies.
        source: the dataset that it belongs to; tools compare tasks by both.
        group: what its attempts are listed under, where that is not the task's own name.
    """

    path: Path
    source: str | None = None
    group: str | None = None

    @property
    def config(self) -> TaskConfig:
        """The task as Harbor's configurations name it."""
        return TaskConfig(path=self.path, source=self.source)


@dataclass(frozen=True)
class JobDescription:
    """What all trials of a job have in common.

    Attributes:
        agent: a native agent's name, or the workflow's as ``module:Class``.
        model: the model's name as ``provider/name``, where it is known beforehand.
        model_url: the base URL of the model's server.
        grader: the SDK grader's name, where there is one.
        environment: what Harbor itself would run the tasks in.
    """

    agent: str
    is_native: bool
    model: str | None = None
    model_url: str | None = None
    grader: str | None = None
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    n_concurrent: int = 4


@dataclass(frozen=True)
class TrialError:
    """Why a trial failed: a name that Harbor counts by, and what happened."""

    kind: str
    message: str


@dataclass(frozen=True)
class TrialEnd:
    """What came of a trial, by the engine's own word; it wins over what Harbor recorded.

    Attributes:
        name: the trial's directory in the job, which is the rollout's id.
        rewards: by name; none where the trial has no result.
        calls: the model calls of its agent; ``None`` where the trajectory knows them.
        seconds: how long it took, for a trial of which Harbor recorded nothing.
    """

    name: str
    task: JobTask
    rewards: Mapping[str, float | int] = field(default_factory=dict)
    error: TrialError | None = None
    calls: Sequence[LlmCallMetrics] | None = None
    seconds: float = 0.0
    ended_at: datetime | None = None
