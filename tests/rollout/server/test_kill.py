"""A server killed under load a few times; ``tests.experiments.server_kill`` does it by hundreds."""

from pathlib import Path

import pytest

from tests.experiments.server_kill.experiment import Plan, experiment
from tests.experiments.server_kill.moments import (
    ACKNOWLEDGED,
    ADMISSION,
    DELIVERY,
    GRADING,
    PUBLISHING,
    STARTING,
)


@pytest.mark.timeout(280)
async def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    moments = (ADMISSION, DELIVERY, GRADING, STARTING, PUBLISHING, ACKNOWLEDGED)
    plan = Plan(kills=len(moments), moments=moments, callers=8, uptime_sec=(0.1, 0.4))
    report = await experiment(plan, tmp_path)
    assert report.problems == []
    assert sum(report.killed_at.values()) == plan.kills
    assert report.rollouts > 10
    assert report.reads > 10
    assert report.callbacks > 3
    assert any("failure" in ending for ending in report.endings), "no kill hit a rollout"
