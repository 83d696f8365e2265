"""Projects that differ between this machine and a sandbox."""

from pathlib import Path

import pytest

from tests.harbor_backend.rollouts.conftest import MakeBackend, run

pytestmark = pytest.mark.docker


async def test_an_import_that_fails_in_the_sandbox_only(
    make_backend: MakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project]\nname = "inside-only"\nversion = "1.0"\ndependencies = ["osmosis-ai"]\n'
    )
    (project / "inside_only.py").write_text(
        "import os\nfrom osmosis_ai.rollout import AgentWorkflow\n"
        "if os.path.exists('/run/osmosis'):\n    raise ImportError('no display in here')\n"
        "class Flow(AgentWorkflow):\n    async def run(self, ctx):\n        return None\n"
    )
    monkeypatch.syspath_prepend(str(project))
    outcome = await run(make_backend(agent="inside_only:Flow", code_dir=project))
    assert outcome.result.status == "failure"
    assert "no display in here" in str(outcome.result.err_message)
