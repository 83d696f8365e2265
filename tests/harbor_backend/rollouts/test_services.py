"""Tasks of several services, in Harbor's Docker environment: each path means what it meant."""

from pathlib import Path

import pytest
from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from sandbox_images import BASE_IMAGE
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker

INCLUDES = "include: [services.yaml]\n"
SERVICES = """
services:
  main:
    depends_on: [side]
    env_file: [../../../shared/variables.env]
    environment: {BESIDE: written}
    volumes: ["../../../shared:/shared:ro", "./data:/data", "from-side:/side"]
  side:
    build: ../../../shared
    image: !reset null
    command: !override ["sh", "-c", "cp /from-build /side/it; exec sleep infinity"]
    volumes: ["from-side:/side"]
volumes: {from-side: {}}
"""
CHECK = """set -e
[ "$BESIDE $OUTSIDE" = "written read" ]
[ "$(cat /shared/Dockerfile | head -1)" = "FROM {image}" ]
[ "$(cat /side/it)" = built ]
[ "$(cat /data/kept)" = kept ]
[ ! -e /data/mark ]; touch /data/mark
echo 1 > /logs/verifier/reward.txt"""
SEPARATE = """artifacts = ["/app/answer"]
[verifier]
environment_mode = "separate"
"""


@pytest.fixture
def composed(make_task: MakeTask) -> Path:
    """A task whose compose file includes another, which names files outside of the task."""
    task = make_task("composed", tests=CHECK.format(image=BASE_IMAGE))
    shared = task.parents[1] / "shared"
    shared.mkdir()
    (shared / "Dockerfile").write_text(f"FROM {BASE_IMAGE}\nRUN echo built > /from-build\n")
    (shared / "variables.env").write_text("OUTSIDE=read\n")
    (task / "environment" / "docker-compose.yaml").write_text(INCLUDES)
    (task / "environment" / "services.yaml").write_text(SERVICES)
    (task / "environment" / "data").mkdir()
    (task / "environment" / "data" / "kept").write_text("kept\n")
    return task


@pytest.mark.parametrize("forced", [False, True])
async def test_paths_mean_what_their_author_meant(
    make_backend: MakeBackend, composed: Path, forced: bool
) -> None:
    """Also where a trial writes: that is its own copy, and the task stays as it is."""
    config = EnvironmentConfig(type=EnvironmentType.DOCKER) if forced else None
    backend = make_backend(
        agent="nop", tasks_dir=composed.parent, task_mode="dataset", environment_config=config
    )
    outcome = await run(backend, metadata={"harbor_task_id": "composed"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 1.0
    assert [path.name for path in (composed / "environment" / "data").iterdir()] == ["kept"]


async def test_a_separate_verifier_has_services_of_its_own(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(
        "judged",
        toml=SEPARATE,
        tests='[ "$FROM_FILE" = yes ] && [ "$(cat /app/answer)" = 42 ] && '
        "echo 1 > /logs/verifier/reward.txt",
        dockerfile=f"FROM {BASE_IMAGE}\nRUN mkdir /app && echo 42 > /app/answer\n",
        tests__Dockerfile=f"FROM {BASE_IMAGE}\nCOPY test.sh /tests/test.sh\n",
        tests__variables="FROM_FILE=yes\n",
    )
    (task / "tests" / "docker-compose.yaml").write_text(
        "services:\n  main:\n    env_file: [variables]\n"
    )
    backend = make_backend(agent="nop", tasks_dir=task.parent, task_mode="dataset")
    outcome = await run(backend, metadata={"harbor_task_id": "judged"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [("services: [main]", "services must be a mapping"), ("include: [none.yaml]", "none.yaml")],
)
async def test_a_compose_file_that_cannot_be_used(
    make_backend: MakeBackend, make_task: MakeTask, text: str, said: str
) -> None:
    task = make_task("wrong", tests="exit 0")
    file = task / "environment" / "docker-compose.yaml"
    file.write_text(text)
    backend = make_backend(agent="nop", tasks_dir=task.parent, task_mode="dataset")
    outcome = await run(backend, metadata={"harbor_task_id": "wrong"})
    assert outcome.result.err_category == "validation_error"
    assert outcome.result.extra_fields["phase"] == "environment_setup"
    message = str(outcome.result.err_message)
    assert f"The compose file of task wrong ({file}) cannot be used" in message
    assert said in message
