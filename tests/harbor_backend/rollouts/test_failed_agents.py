"""Workflows that fail or never come back, in tasks whose own tests grade what they left."""

import pytest

from harbor_backend.trial import phase as phases
from osmosis_ai.rollout import RolloutStatus
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker

SERVE = (
    "mkdir /srv/www; cd /srv/www; echo 42 >answer; "
    "python3 -m http.server 8000 >/dev/null 2>&1 & sleep 300"
)
FETCH = (
    "from urllib.request import urlopen as get; print(get('http://127.0.0.1:8000/answer').read())"
)


async def test_a_workflows_deadline_leaves_what_it_started_to_the_tests(
    make_backend: MakeBackend, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that of one that blocks its loop, so that its process is killed."""
    monkeypatch.setattr(phases, "GRACE_SEC", 1.0)
    task = make_task(
        toml='artifacts = ["/srv/www/answer"]\n',
        instruction=f"Run:\n```sh\n{SERVE}\n```\n",
        tests=f'python3 -c "{FETCH}" | grep -q 42 && echo 0.5 > /logs/verifier/reward.txt',
    )
    backend = make_backend(agent="adversary:Act", tasks_dir=task.parent, task_mode="dataset")
    outcome = await run(backend, metadata={"harbor_task_id": "made"}, agent_timeout_sec=3)
    for result in (outcome.workflow, outcome.result):
        assert result.status is RolloutStatus.SUCCESS, result
        assert result.err_category == "timeout"
        assert str(result.err_message).startswith("Workflow exceeded its 3s deadline")
    assert outcome.result.sample is not None
    assert (outcome.result.sample.reward, outcome.result.sample.label) == (0.5, "4")
    assert outcome.result.extra_fields["phase"] == "agent"
    assert outcome.result.extra_fields["category"] == "timeout"


async def test_a_process_that_died_is_graded(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(tests="echo 0 > /logs/verifier/reward.txt")
    outcome = await run(make_backend(agent="adversary:Exit", tasks_dir=task))
    assert outcome.result.err_category == "agent_error"
    assert "exit code 7" in str(outcome.result.err_message)
    assert outcome.result.is_scored
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == 0.0
