"""Delivery over real HTTP: order, retries, restarts, receivers that misbehave."""

import asyncio
import itertools
import json
import logging
import socket
import time
from typing import Any

import pytest
from aiohttp import web

from osmosis_ai.rollout.server.callbacks import (
    Callback,
    CallbackKind,
    CallbackOutbox,
    ControllerAuth,
    OutboxLimits,
)
from osmosis_ai.rollout.trajectory import TrajectoryReport
from tests.local_backend.gates import until
from tests.rollout.server.callbacks.memory_store import MemoryStore
from tests.rollout.server.callbacks.receiver import Receiver, receiver

QUICK = OutboxLimits(
    first_pause_sec=0.01,
    round_pause_sec=0.04,
    attempt_sec=1.0,
    post_sec=5.0,
    later_pause_sec=0.05,
    longest_pause_sec=0.4,
)


def callback(
    url: str, kind: str = "completion", rollout_id: str = "r-1", **fields: Any
) -> Callback:
    given: dict[str, Any] = {
        "url": url,
        "body": json.dumps({"rollout_id": rollout_id, "kind": kind}).encode(),
        "auth": ControllerAuth("trainer-key"),
        "created_at": time.time(),
    }
    return Callback(rollout_id, CallbackKind(kind), **(given | fields))


def kinds(trainer: Receiver) -> list[str]:
    return [json.loads(one.body)["kind"] for one in trainer.received]


async def test_both_callbacks_arrive_in_order_with_the_key() -> None:
    store = MemoryStore()
    outbox = CallbackOutbox(store)
    async with receiver() as trainer, outbox.running():
        for kind in ("completion", "grader"):
            posted = await outbox.post(callback(f"{trainer.url}/{kind}?x=1", kind))
            assert (posted.state, posted.problem, posted.report) == ("delivered", None, None)
    assert [one.path for one in trainer.received] == ["/completion?x=1", "/grader?x=1"]
    assert {one.headers["Authorization"] for one in trainer.received} == {"Bearer trainer-key"}
    assert {one.headers["Content-Type"] for one in trainer.received} == {"application/json"}
    assert list(store.ends.values()) == ["delivered", "delivered"]
    assert outbox.waiting == 0


async def test_a_trainer_without_a_key_gets_no_authorization() -> None:
    outbox = CallbackOutbox(MemoryStore())
    async with receiver() as trainer, outbox.running():
        await outbox.post(callback(trainer.url, auth=ControllerAuth()))
    assert "Authorization" not in trainer.received[0].headers


@pytest.mark.parametrize("fault", [429, 500, 502, 503, 504, "drop", "hang"])
async def test_what_may_pass_is_tried_again_with_the_same_bytes(fault: int | str) -> None:
    outbox = CallbackOutbox(MemoryStore(), QUICK)
    async with receiver() as trainer, outbox.running():
        trainer.script = [fault, fault]
        assert (await outbox.post(callback(trainer.url))).state == "delivered"
    assert len(trainer.received) == 3
    assert len({one.body for one in trainer.received}) == 1
    assert len({one.headers["Idempotency-Key"] for one in trainer.received}) == 1


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 409, 422])
async def test_any_other_answer_is_the_last(status: int) -> None:
    store = MemoryStore()
    outbox = CallbackOutbox(store, QUICK)
    async with receiver() as trainer, receiver() as elsewhere, outbox.running():
        trainer.script = [web.Response(status=status, headers={"Location": elsewhere.url})]
        posted = await outbox.post(callback(trainer.url))
        assert posted.state == "failed"
        assert f"answered {status}" in (posted.problem or "")
        # The grader's callback holds the result, which the trainer may want all the same.
        assert (await outbox.post(callback(trainer.url, "grader"))).state == "delivered"
    assert kinds(trainer) == ["completion", "grader"]
    assert elsewhere.received == []


async def test_the_first_round_is_five_attempts_with_doubling_pauses() -> None:
    store = MemoryStore()
    limits = OutboxLimits(first_pause_sec=0.1, round_pause_sec=0.3)
    outbox = CallbackOutbox(store, limits)
    async with receiver() as trainer, outbox.running():
        trainer.always = 503
        posted = await outbox.post(callback(trainer.url))
        assert posted.state == "deferred"
        grader = await outbox.post(callback(trainer.url, "grader"))
        assert grader.state == "deferred"
    times = [one.at for one in trainer.received]
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert [round(pause, 1) for pause in pauses] == [0.1, 0.2, 0.3, 0.3]
    kept = store.kept["r-1", CallbackKind.COMPLETION]
    assert kept.attempts == 5
    assert 11 < kept.next_attempt_at - time.time() < 19
    assert "answered 503" in store.problems[0]
    assert kinds(trainer) == ["completion"] * 5


async def test_a_receiver_that_comes_back_gets_everything_in_order() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    store = MemoryStore()
    outbox = CallbackOutbox(store, QUICK)
    async with outbox.running():
        for rollout_id in ("a", "b"):
            for kind in ("completion", "grader"):
                assert (await outbox.post(callback(url, kind, rollout_id))).state == "deferred"
        async with receiver(port) as trainer:
            await until(lambda: len(store.ends) == 4)
    assert set(store.ends.values()) == {"delivered"}
    for rollout_id in ("a", "b"):
        mine = [json.loads(one.body) for one in trainer.received]
        assert [one["kind"] for one in mine if one["rollout_id"] == rollout_id] == [
            "completion",
            "grader",
        ]


async def test_a_restart_goes_on_with_the_same_bytes() -> None:
    store = MemoryStore()
    patient = OutboxLimits(round_attempts=1, later_pause_sec=600)
    async with receiver() as trainer:
        trainer.always = 500
        outbox = CallbackOutbox(store, patient)
        async with asyncio.timeout(5), outbox.running():
            await outbox.post(callback(trainer.url))
            await outbox.post(callback(trainer.url, "grader"))
        assert len(store.kept) == 2
        assert (await outbox.post(callback(trainer.url, rollout_id="late"))).state == "deferred"
        trainer.always = None
        for key, kept in store.kept.items():
            store.kept[key] = Callback(**(vars(kept) | {"next_attempt_at": 0.0}))
        async with CallbackOutbox(store, patient).running():
            await until(lambda: len(store.ends) == 3)
    bodies = [one.body for one in trainer.received if b"late" not in one.body]
    assert [json.loads(body)["kind"] for body in bodies] == ["completion", "completion", "grader"]
    assert bodies[0] == bodies[1]


async def test_leaving_waits_for_the_attempt_under_way() -> None:
    store = MemoryStore()
    outbox = CallbackOutbox(store, QUICK)
    async with receiver() as trainer:
        trainer.script = ["hang"]
        async with asyncio.TaskGroup() as group, outbox.running():
            posting = group.create_task(outbox.post(callback(trainer.url)))
            await trainer.came.wait()
        assert posting.result().state == "deferred"
        assert len(trainer.received) == 1
    assert store.kept.keys() == {("r-1", "completion")}


async def test_a_second_callback_of_a_kind_is_not_sent() -> None:
    outbox = CallbackOutbox(MemoryStore(), QUICK)
    async with receiver() as trainer, outbox.running():
        assert (await outbox.post(callback(trainer.url))).state == "delivered"
        again = await outbox.post(callback(trainer.url, body=b"{}"))
    assert again.state == "duplicate"
    assert len(trainer.received) == 1


async def test_a_callback_is_given_up_at_its_age() -> None:
    store = MemoryStore()
    limits = OutboxLimits(
        round_attempts=2, first_pause_sec=0.01, later_pause_sec=0.05, max_age_sec=0.3
    )
    outbox = CallbackOutbox(store, limits)
    async with receiver() as trainer, outbox.running():
        trainer.always = 503
        assert (await outbox.post(callback(trainer.url))).state == "deferred"
        await until(lambda: len(store.ends) == 1)
    assert "undelivered for too long" in store.ends["r-1", CallbackKind.COMPLETION]
    assert len(trainer.received) >= 3


async def test_a_hanging_receiver_holds_up_nobody_else() -> None:
    limits = OutboxLimits(attempt_sec=1.0, post_sec=3.0, per_origin=2, in_all=8)
    outbox = CallbackOutbox(MemoryStore(), limits)
    async with receiver() as hanging, receiver() as trainer, outbox.running():
        hanging.always = "hang"
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(outbox.post(callback(hanging.url, rollout_id=f"h-{number}")))
            await until(lambda: hanging.at_once == 2)
            async with asyncio.timeout(1):
                for number in range(20):
                    posted = await outbox.post(callback(trainer.url, rollout_id=f"t-{number}"))
                    assert posted.state == "delivered"
            began = time.monotonic()
        assert time.monotonic() - began < 4
    assert hanging.most_at_once == 2


async def test_reports_reach_the_hook(caplog: pytest.LogCaptureFixture) -> None:
    reports: list[tuple[str, str, TrajectoryReport]] = []

    async def keep(rollout_id: str, kind: CallbackKind, report: TrajectoryReport) -> None:
        reports.append((rollout_id, kind, report))
        raise RuntimeError("the hook broke")

    report = {"model_name": "policy", "samples": {"x": {"llm_call_metrics": []}}}
    outbox = CallbackOutbox(MemoryStore(), QUICK, on_report=keep)
    async with receiver() as trainer, outbox.running():
        trainer.script = [
            web.json_response({"trajectory": report}),
            web.json_response({"trajectory": {"samples": 3}}),
            web.Response(text="thank you"),
            web.Response(body=b"\xff{"),
        ]
        first = await outbox.post(callback(trainer.url))
        others = [await outbox.post(callback(trainer.url, rollout_id=f"o-{n}")) for n in range(3)]
    assert first.state == "delivered"
    assert first.report is not None
    assert [(one[0], one[1], one[2].model_name) for one in reports] == [
        ("r-1", "completion", "policy")
    ]
    assert [(one.state, one.report) for one in others] == [("delivered", None)] * 3
    assert "malformed trajectory report" in caplog.text
    assert "the hook broke" in caplog.text


@pytest.mark.parametrize("answer", ["half", "long"])
async def test_an_answer_that_cannot_be_read_is_a_delivery_all_the_same(answer: str) -> None:
    limits = OutboxLimits(ack_bytes=1000)
    store = MemoryStore()
    outbox = CallbackOutbox(store, limits)
    async with receiver() as trainer, outbox.running():
        trainer.script = ["half" if answer == "half" else web.Response(body=b"1" * 2**20)]
        assert (await outbox.post(callback(trainer.url))).state == "delivered"
    assert len(trainer.received) == 1


async def test_without_its_credential_a_callback_fails_unsent() -> None:
    store = MemoryStore()
    lost = callback("http://127.0.0.1:9", lost_credential="set OSMOSIS_STORE_KEY", attempts=3)
    await store.add(lost)
    async with CallbackOutbox(store, QUICK).running():
        await until(lambda: bool(store.ends))
    assert list(store.ends.values()) == ["set OSMOSIS_STORE_KEY"]


async def test_a_store_that_fails_for_a_while_causes_no_second_delivery() -> None:
    store = MemoryStore(broken=1)
    outbox = CallbackOutbox(store, QUICK)
    async with receiver() as trainer, outbox.running():
        assert (await outbox.post(callback(trainer.url))).state == "delivered"
    assert len(trainer.received) == 1
    assert list(store.ends.values()) == ["delivered"]


async def test_a_delivery_hurries_those_who_wait_for_the_same_receiver() -> None:
    store = MemoryStore()
    limits = OutboxLimits(round_attempts=1, later_pause_sec=0.05, longest_pause_sec=600)
    outbox = CallbackOutbox(store, limits)
    async with receiver() as trainer, outbox.running():
        for number in range(20):
            await store.add(
                callback(
                    trainer.url,
                    rollout_id=f"w-{number}",
                    attempts=9,
                    next_attempt_at=time.time() + 600,
                )
            )
        await outbox.resume()
        await asyncio.sleep(0.2)
        assert trainer.received == []
        await outbox.post(callback(trainer.url))
        await until(lambda: len(store.ends) == 21)


async def test_one_that_is_always_refused_is_not_hurried_beyond_its_pause() -> None:
    limits = OutboxLimits(round_attempts=1, later_pause_sec=30, longest_pause_sec=600)
    outbox = CallbackOutbox(MemoryStore(), limits)
    async with receiver() as bad, outbox.running():
        bad.script = [500]
        await outbox.post(callback(bad.url, rollout_id="poison"))
        bad.always = 500
        began = time.monotonic()
        while time.monotonic() - began < 0.3:
            bad.script = [200]
            await outbox.post(callback(bad.url, rollout_id=f"o-{time.monotonic()}"))
    assert sum(b"poison" in one.body for one in bad.received) == 1


async def test_a_retry_after_lengthens_the_pause() -> None:
    store = MemoryStore()
    outbox = CallbackOutbox(store, OutboxLimits(round_attempts=1))
    async with receiver() as trainer, outbox.running():
        trainer.script = [web.Response(status=429, headers={"Retry-After": "100"})]
        await outbox.post(callback(trainer.url))
    due = store.kept["r-1", CallbackKind.COMPLETION].next_attempt_at - time.time()
    assert 79 < due < 121


async def test_logs_hold_neither_key_nor_query(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    outbox = CallbackOutbox(MemoryStore(), QUICK)
    async with receiver() as trainer, outbox.running():
        trainer.script = [500, 500, 500, 500, 500, 404]
        await outbox.post(callback(f"{trainer.url}/cb?token=secret"))
        await until(lambda: outbox.waiting == 0)
        entry = callback(trainer.url + "/?secret")
    assert "given up" in caplog.text
    assert "secret" not in caplog.text + repr(entry)
    assert "trainer-key" not in caplog.text + repr(entry)
