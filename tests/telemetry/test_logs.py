"""Log lines that name their rollout."""

import asyncio
import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.gateway import Gateway
from osmosis_ai.gateway.calls import OpenCall
from osmosis_ai.telemetry import Telemetry, about_rollout, configure_logs
from osmosis_ai.telemetry.logs import JsonFormatter
from tests.telemetry.collector import Collector
from tests.telemetry.rollouts import ask

logger = logging.getLogger("tests.telemetry")


type Bare = Callable[[], logging.Logger]


def configured(bare: Bare, style: str | None = None) -> io.StringIO:
    """Configure a process's logs; returns where they go."""
    bare()
    stream = io.StringIO()
    configure_logs(stream, style)
    return stream


def parsed(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_a_json_object(bare_root_logger: Bare) -> None:
    lines = configured(bare_root_logger)
    with about_rollout("r-1"):
        try:
            raise ValueError("broken")
        except ValueError:
            logger.exception("Rollout %s: failed", "r-1", extra={"step": 3, "odd": object})
    logger.debug("not shown")
    logger.warning("no rollout")
    first, second = parsed(lines)
    assert first["message"] == "Rollout r-1: failed"
    assert (first["level"], first["logger"]) == ("ERROR", "tests.telemetry")
    assert first["rollout_id"] == "r-1"
    assert first["step"] == 3
    assert first["exception"].endswith("ValueError: broken\n")
    assert first["time"].endswith("+00:00")
    assert set(second) == {"time", "level", "logger", "message"}


async def test_each_task_logs_its_own_rollout(bare_root_logger: Bare) -> None:
    lines = configured(bare_root_logger)
    telemetry = Telemetry()

    async def run(rollout_id: str) -> None:
        with telemetry.rollout(rollout_id):
            await asyncio.sleep(0)
            logger.info("here")

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(run(f"r-{number}"))
    assert sorted(line["rollout_id"] for line in parsed(lines)) == [f"r-{n}" for n in range(5)]


async def test_a_model_call_logs_its_rollout(
    bare_root_logger: Bare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway serves calls in tasks that are nobody's rollout."""
    lines = configured(bare_root_logger)

    def noting(call: OpenCall) -> None:
        logger.info("committed")
        commit(call)

    commit = OpenCall.commit
    monkeypatch.setattr(OpenCall, "commit", noting)
    async with Gateway() as gateway, gateway.open("r-7", None) as endpoint:
        with about_rollout("another"):
            assert (await ask("m", endpoint.url, endpoint.token)).status_code == 404
    own = [line for line in parsed(lines) if line["logger"] == logger.name]
    assert [line["rollout_id"] for line in own] == ["r-7"]


async def test_lines_name_the_trace(collector: Collector, bare_root_logger: Bare) -> None:
    telemetry = Telemetry()
    async with telemetry.running():
        lines = configured(bare_root_logger)
        with telemetry.rollout("r-1"), about_rollout("r-1"):
            logger.info("here")
    (line,) = [line for line in parsed(lines) if line["message"] == "here"]
    whole = collector.named("rollout")
    assert (line["trace_id"], line["span_id"]) == (whole.trace_id, whole.span_id)


@given(st.text(), st.text(), st.dictionaries(st.text(min_size=1), st.text()))
def test_whatever_is_logged_is_one_line(message: str, rollout_id: str, extra: Any) -> None:
    record = logging.makeLogRecord({"msg": message, "rollout_id": rollout_id, "more": extra})
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert json.loads(line)["message"] == message


def test_people_read_text(bare_root_logger: Bare) -> None:
    stream = configured(bare_root_logger, "text")
    with about_rollout("r-1"):
        logger.info("started")
    logger.info("idle")
    first, second = stream.getvalue().splitlines()
    assert first.endswith("INFO tests.telemetry: started [r-1]")
    assert second.endswith("INFO tests.telemetry: idle")


def test_a_process_that_logs_already_is_left_alone(bare_root_logger: Bare) -> None:
    root, own = bare_root_logger(), logging.NullHandler()
    root.addHandler(own)
    configure_logs(io.StringIO())
    assert root.handlers == [own]


def test_the_environment_chooses(bare_root_logger: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSMOSIS_LOG_FORMAT", "xml")
    with pytest.raises(ValueError, match="OSMOSIS_LOG_FORMAT must be 'json' or 'text', got 'xml'"):
        configured(bare_root_logger)
    monkeypatch.setenv("OSMOSIS_LOG_FORMAT", "text")
    stream = configured(bare_root_logger)
    logger.info("plain")
    assert stream.getvalue().endswith("tests.telemetry: plain\n")


def test_a_text_makes_no_line_of_its_own(bare_root_logger: Bare) -> None:
    lines = configured(bare_root_logger, "text")
    forged = "x\n2026-01-01 00:00:00,000 INFO osmosis: all is well \x1b[2J\u202e"
    try:
        raise ValueError(forged)
    except ValueError:
        logger.exception("failed: %s", forged)
    first, *traceback = lines.getvalue().splitlines()
    assert first.endswith(r"all is well \u001b[2J\u202e")
    assert traceback
    assert all(line.startswith("    ") for line in traceback)
    assert "\x1b" not in lines.getvalue()
