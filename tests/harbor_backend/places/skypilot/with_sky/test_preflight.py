"""Whether SkyPilot can be used is found out when a backend is made, and by the doctor."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.places.skypilot import SkypilotUnavailableError
from harbor_backend.places.skypilot.environment import SkypilotEnvironment
from harbor_backend.places.skypilot.preflight import check_skypilot
from harbor_backend.places.skypilot.sdk import load_sdk
from tests.harbor_backend.places.skypilot.with_sky.conftest import ENDPOINT, TASKS
from tests.harbor_backend.places.skypilot.with_sky.servers import api_server


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Chooses an API server, or none."""
    from sky.server import common

    def choose(url: str | None) -> None:
        monkeypatch.delenv(ENDPOINT, raising=False)
        if url is not None:
            monkeypatch.setenv(ENDPOINT, url)
        common.get_server_url.cache_clear()

    yield choose
    monkeypatch.undo()
    common.get_server_url.cache_clear()


def test_all_is_well() -> None:
    checks = list(check_skypilot())
    assert [check.name for check in checks] == ["skypilot", "skypilot api", "skypilot health"]
    assert all(check.passed for check in checks), checks
    SkypilotEnvironment.preflight()


def test_a_default_address_that_nobody_chose(endpoint: Any) -> None:
    endpoint(None)
    failed = list(check_skypilot())[-1]
    assert "No API server was chosen" in failed.detail
    assert failed.remedy is not None
    assert "sky api login" in failed.remedy


@pytest.mark.parametrize("status", ["needs_auth", "version_mismatch", "unhealthy"])
def test_a_server_that_is_not_ready(endpoint: Any, status: str) -> None:
    with api_server(status) as url:
        endpoint(url)
        with pytest.raises(SkypilotUnavailableError, match=f"api/health says {status}"):
            SkypilotEnvironment.preflight()


def test_a_server_that_does_not_answer(endpoint: Any) -> None:
    endpoint("http://user:secret@127.0.0.1:9")
    with pytest.raises(SkypilotUnavailableError, match="unhealthy") as caught:
        SkypilotEnvironment.preflight()
    assert "secret" not in str(caught.value)


def test_no_sandbox_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    import sky

    monkeypatch.delattr(sky, "sandbox", raising=False)
    monkeypatch.setitem(sys.modules, "sky.sandbox", None)
    monkeypatch.setattr("harbor_backend.places.skypilot.sdk.entry_points", lambda **_: ())
    load_sdk.cache_clear()
    with pytest.raises(SkypilotUnavailableError, match=r"has no sandbox SDK.*sandboxes\.html"):
        SkypilotEnvironment.preflight()


def test_the_doctor_tells_the_same(endpoint: Any) -> None:
    from osmosis_ai.cli.doctor.findings import Level
    from osmosis_ai.cli.doctor.skypilot import skypilot

    assert [finding.level for finding in skypilot()] == [Level.OK] * 3
    endpoint(None)
    last = skypilot()[-1]
    assert last.level is Level.WARN
    assert last.remedy is not None
    assert "sky api login" in last.remedy


def backend(**arguments: Any) -> HarborBackend:
    arguments.setdefault("tasks_dir", TASKS / "multiply")
    arguments.setdefault("agent", "oracle")
    kwargs = arguments.pop("sky", {"registry": "ghcr.io/team"})
    return HarborBackend(
        orchestrator=TrialQueue(n_concurrent=1),
        environment_config=EnvironmentConfig(type="skypilot", kwargs=kwargs),
        **arguments,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sky": {}}, "Set one of: kwargs={'pool'"),
        ({"sky": {"pol": "x"}}, "unknown key 'pol'"),
        ({"sky": {}, "tasks_dir": TASKS / "dataset", "task_mode": "dataset"}, "Set one of"),
        ({"agent": "mini-swe-agent"}, "agent_base_url= is not set"),
        ({"agent_base_url": "http://localhost:8900"}, "means this machine"),
        ({"agent_bind": "0.0.0.0:8900"}, "without agent_base_url="),
        ({"keep_sandboxes": True}, "keep_sandboxes=True is not supported"),
    ],
)
def test_a_backend_that_cannot_work_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        backend(**arguments)


def test_a_backend_without_a_server_is_refused(endpoint: Any) -> None:
    endpoint(None)
    with pytest.raises(SkypilotUnavailableError, match="No API server was chosen"):
        backend()


async def test_health_says_that_a_public_url_is_needed() -> None:
    made = backend()
    assert made.health()["chat_endpoint"] == {
        "environment": "skypilot",
        "requires_public_url": True,
    }
    await made.shutdown()
