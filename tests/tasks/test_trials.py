"""Real trials on Harbor's own Docker environment: only the whole solution passes."""

from pathlib import Path

import pytest
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

from .dataset import DATASET

pytestmark = pytest.mark.docker

# Without it every trial waits ten seconds for a container that ignores its stop signal.
STOP_AT_ONCE = "services:\n  main:\n    stop_grace_period: 0s\n"

PATCH_THE_VISIBLE_TEST = r"""
set -e
sed -i 's/\[0\], end)/[0], max(end, merged[-1][1]))/' bookings/merge.py
python3 -m unittest
"""

ANSWER_THE_SAMPLE = r"""
set -e
cat > report.py <<'END'
print('{"requests": 7, "malformed": 2, "by_status": {"2xx": 4, "4xx": 1, "5xx": 2}, '
      '"slowest": "/items", "top_paths": [["/items", 4], ["/items/42", 2], ["/health", 1]], '
      '"server_errors_by_hour": {"2026-03-01T08": 1, "2026-03-01T09": 1}}')
END
python3 report.py access.log
"""


async def rewards(name: str, agent: AgentConfig, folder: Path) -> dict[str, float | int]:
    overlay = folder / "stop-at-once.yaml"
    overlay.write_text(STOP_AT_ONCE)
    trial = await Trial.create(
        TrialConfig(
            task=TaskConfig(path=DATASET / name),
            trials_dir=folder / "trials",
            agent=agent,
            environment=EnvironmentConfig(extra_docker_compose=[overlay]),
        )
    )
    result = await trial.run()
    assert result.exception_info is None, result.exception_info
    assert result.verifier_result is not None
    assert result.verifier_result.rewards is not None
    return result.verifier_result.rewards


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
@pytest.mark.parametrize("name", ["free-slots", "kv-migrate"])
async def test_the_solution_passes_and_doing_nothing_does_not(
    name: str, agent: str, reward: float, tmp_path: Path
) -> None:
    assert await rewards(name, AgentConfig(name=agent), tmp_path) == {"reward": reward}


@pytest.mark.parametrize(
    ("name", "script"),
    [("free-slots", PATCH_THE_VISIBLE_TEST), ("log-report", ANSWER_THE_SAMPLE)],
    ids=["free-slots", "log-report"],
)
async def test_a_submission_that_only_fits_what_is_visible_does_not_pass(
    name: str, script: str, tmp_path: Path
) -> None:
    agent = AgentConfig(
        import_path="tests.tasks.script_agent:ScriptAgent", kwargs={"script": script}
    )
    assert await rewards(name, agent, tmp_path) == {"reward": 0.0}
