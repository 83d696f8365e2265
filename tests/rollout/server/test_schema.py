"""The published schema is what the server does: checked by requests made from it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from osmosis_ai.rollout import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server
from osmosis_ai.rollout.server.routes import events
from tests.local_backend.gates import QuickGrader, QuickWorkflow

KEY = "the-control-key"


@pytest.fixture(scope="module")
def api_schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The schema of a server on a real port."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("rollouts")
        patch.setenv("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", str(root))
        patch.setattr(events, "STREAM_SEC", 0.05)
        backend = LocalBackend(workflow=QuickWorkflow, grader=QuickGrader)
        app = create_rollout_server(
            backend=backend,
            api_key=KEY,
            result_wait_timeout_sec=0.05,
            polling_lease_timeout_sec=5,
            configure_logging=False,
        )
        with served(app) as url:
            loaded = schemathesis.openapi.from_url(
                f"{url}/openapi.json", headers={"Authorization": f"Bearer {KEY}"}
            )
            loaded.config.update(base_url=url)
            yield loaded


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Run the app in a thread; yields its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


def operations() -> Iterator[tuple[str, str, GenerationMode]]:
    """Every published operation, with valid requests, and invalid ones where there can be any."""
    backend = LocalBackend(workflow=QuickWorkflow)
    app = create_rollout_server(backend=backend, configure_logging=False)
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield path, method, GenerationMode.POSITIVE
            places = {parameter["in"] for parameter in operation.get("parameters", [])}
            if "requestBody" in operation or places - {"path"}:
                yield path, method, GenerationMode.NEGATIVE


@pytest.mark.parametrize(("path", "method", "mode"), list(operations()))
def test_what_is_published_is_what_is_done(
    api_schema: Any,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    method: str,
    mode: GenerationMode,
) -> None:
    if path == "/rollout":
        # What is a model's or a trainer's URL, or a header's value, no schema can say.
        accepted = api_schema.config.checks.positive_data_acceptance
        monkeypatch.setattr(accepted, "expected_statuses", [*accepted.expected_statuses, "422"])
    strategy = api_schema[path][method.upper()].as_strategy(generation_mode=mode)

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=strategy)
    def check(case: Any) -> None:
        case.call_and_validate(headers={"Authorization": f"Bearer {KEY}"})

    check()
