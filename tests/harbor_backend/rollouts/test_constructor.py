"""What HarborBackend refuses before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from harbor_backend import HarborBackend
from osmosis_ai.rollout import AgentWorkflowConfig
from tests.harbor_backend.rollouts.conftest import DATASET, MakeBackend, MakeTask


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "agent=None"),
        ({"agent": "no-such-agent"}, ValueError, "'no-such-agent' is no registered native agent"),
        ({"agent": "adversary:Missing"}, ImportError, "does not export 'Missing'"),
        ({"agent": "no_such_module:X"}, ImportError, "No module named 'no_such_module'"),
        ({"agent": "adversary:LookAround"}, TypeError, "subclass of AgentWorkflow"),
        ({"agent": "adversary:Wait", "grader": "adversary:Wait"}, TypeError, "subclass of Grader"),
        ({"agent": "adversary:Wait", "grader": "adversary"}, ValueError, "module:attr"),
        (
            {"agent": "adversary:Wait", "workflow_config": "adversary:missing"},
            ImportError,
            "does not export 'missing'",
        ),
        (
            {"agent": "adversary:Wait", "workflow_config": AgentWorkflowConfig(name="local")},
            ValueError,
            "Cannot resolve import path",
        ),
        ({"agent": "oracle", "workflow_config": "adversary:answer"}, ValueError, "is native"),
        ({"agent": "adversary:Wait", "native_agent_kwargs": {"a": 1}}, ValueError, "native agent"),
        ({"agent": "adversary:Wait", "max_queue_depth": 0}, ValueError, "max_queue_depth"),
        ({"agent": "adversary:Wait", "grader_sandbox": "none"}, ValueError, "grader_sandbox"),
        ({"agent": "adversary:Wait", "task_mode": "both"}, ValueError, "both"),
        ({"agent": "adversary:Wait", "prewarm": "later"}, ValueError, "prewarm"),
        ({"agent": "adversary:Wait", "verified_tasks": "one"}, TypeError, "verified_tasks"),
        (
            {"agent": "adversary:Wait", "patch_dockerfile_with_sdk": True},
            ValueError,
            "/opt/osmosis",
        ),
        ({"agent": "adversary:Wait", "tasks_dir": "/no/such/task"}, ValueError, "/no/such/task"),
        ({"agent": "adversary:Wait", "tasks_dir": DATASET}, ValueError, "no task.toml"),
        ({"bundle": "/no/such/bundle.whl"}, ValueError, "is not a file"),
    ],
)
async def test_refusals(
    make_backend: MakeBackend,
    arguments: dict[str, Any],
    error: type[Exception],
    text: str,
) -> None:
    """The error says which argument, and what is wrong with it."""
    with pytest.raises(error, match=text):
        make_backend(**arguments)


async def test_a_symlink_in_the_template_is_refused(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task()
    (task / "environment" / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="symbolic link"):
        make_backend(agent="oracle", tasks_dir=task)


async def test_a_bundle_without_a_runner_is_refused(
    make_backend: MakeBackend, tmp_path: Path
) -> None:
    import zipfile

    wheel = tmp_path / "plain-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("plain-1.0.dist-info/METADATA", "Name: plain\nVersion: 1.0\n")
    with pytest.raises(ValueError, match="no runner"):
        make_backend(bundle=wheel)


async def test_a_prebuilt_bundle_needs_nothing_else(
    make_backend: MakeBackend, project: Path, tmp_path: Path
) -> None:
    from osmosis_ai.packaging import EntryPoints, build_bundle

    wheel = build_bundle(project, entry_points=EntryPoints(agent="adversary:Wait"))
    assert isinstance(make_backend(bundle=wheel), HarborBackend)
    with pytest.raises(ValueError, match="part of the bundle"):
        make_backend(bundle=wheel, grader="adversary:LookAround")
