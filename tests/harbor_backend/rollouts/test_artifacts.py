"""What an agent leaves, and where it must not get."""

from pathlib import Path

import pytest
from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from tests.harbor_backend.rollouts.acting import shell
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker


async def test_artifacts_that_would_leave_their_directory(
    make_backend: MakeBackend, artifact_root: Path
) -> None:
    backend = make_backend(agent="adversary:Act")
    outcome = await run(
        backend,
        **shell(
            "cd /logs/artifacts && ln -s /etc/passwd absolute && ln -s ../../../.. up "
            "&& ln -s plain inside && mkfifo pipe && echo x > plain && echo y > '-rf' "
            "&& printf z > \"$(printf 'new\\nline')\" && chmod 000 plain "
            "&& mkdir d && cd d && for i in $(seq 1000); do mkdir d && cd d; done; touch leaf"
        ),
        grade=False,
    )
    assert outcome.result.status == "success", outcome.result
    saved = artifact_root / "r-1" / "artifacts"
    kept = ["-rf", "d", "inside", "new\nline", "plain"]
    assert sorted(path.name for path in saved.iterdir()) == kept
    assert (saved / "inside").readlink() == Path("plain")
    assert (saved / "plain").read_text() == "x\n"
    assert any("left out" in note for note in outcome.result.extra_fields["notes"])


@pytest.mark.parametrize("forced", [False, True], ids=["ours", "harbors"])
@pytest.mark.parametrize("leave", ["mkfifo trajectory.json", "printf '\\377' > trajectory.json"])
async def test_harbor_opens_no_trajectory_of_a_workflow(
    make_backend: MakeBackend, make_task: MakeTask, forced: bool, leave: str
) -> None:
    backend = make_backend(
        agent="adversary:Act",
        tasks_dir=make_task(toml='[environment]\nnetwork_mode = "public"\n'),
        environment_config=EnvironmentConfig(type=EnvironmentType.DOCKER) if forced else None,
    )
    outcome = await run(backend, **shell(f"cd /logs/agent && {leave}"), grade=False)
    assert outcome.result.status == "success", outcome.result
