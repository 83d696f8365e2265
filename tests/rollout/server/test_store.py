"""The store by itself: what a batch does to its members, what keys protect, who takes over."""

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import update

from osmosis_ai.rollout import ExecutionResult, RolloutStatus
from osmosis_ai.rollout.server.store import (
    CredentialsLostError,
    Store,
    StoreClosedError,
    StoreError,
    StoreKeys,
    StoreUnavailableError,
    Wanted,
    open_store,
)
from osmosis_ai.rollout.server.store.admissions import NewRollout
from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.database import open_database, parse_url
from osmosis_ai.rollout.server.store.progress import StatusChange
from osmosis_ai.rollout.server.store.results import TerminalResult
from osmosis_ai.rollout.server.store.store import CHANGES
from osmosis_ai.rollout.server.store.tables import schema_version

KEYS = StoreKeys.from_text("a store key")
SUCCESS = ExecutionResult(status=RolloutStatus.SUCCESS)


@pytest.fixture
async def store(store_url: str, tmp_path: Path) -> AsyncIterator[Store]:
    """An open store of each kind."""
    async with open_store(parse_url(store_url, tmp_path), KEYS) as opened:
        yield opened


def new(rollout_id: str, owner: str = "s-1", **fields: object) -> NewRollout:
    nonce = secrets.token_bytes(32)
    values = {
        "id": rollout_id, "protocol": "polling", "fingerprint": b"f", "nonce": nonce,
        "digest": b"d", "request": b"{}", "sealed": None, "rerun": False, "owner": owner,
        "admitted_at": time.time(), "lease_sec": 60.0,
    }  # fmt: skip
    return NewRollout(**(values | fields))  # type: ignore[arg-type]


def terminal(
    rollout_id: str, owner: str = "s-1", attempt: int = 0, keep: float = 60
) -> TerminalResult:
    now = time.time()
    return TerminalResult(rollout_id, owner, attempt, b"result", SUCCESS, 1.0, now, now + keep)


async def test_of_equal_ids_one_is_admitted(store: Store) -> None:
    numbers = await asyncio.gather(*(store.admit(new("same")) for _ in range(20)))
    assert len([number for number in numbers if number is not None]) == 1
    assert await store.admit(new("same")) is None


async def test_a_result_is_published_once(store: Store) -> None:
    await store.admit(new("r"))
    won = await asyncio.gather(*(store.finish(terminal("r")) for _ in range(5)))
    assert sorted(won) == [False, False, False, False, True]
    assert not await store.finish(terminal("unknown"))
    assert await store.result("r") == b"result"


async def test_one_that_cannot_be_written_takes_no_others_along(store: Store) -> None:
    good = [store.admit(new(f"r-{number}")) for number in range(10)]
    bad = store.admit(new("bad", fingerprint=None))
    *numbers, refused = await asyncio.gather(*good, bad, return_exceptions=True)
    assert isinstance(refused, StoreUnavailableError)
    assert len(set(numbers)) == 10
    assert len(await store.known("r-")) == 10


async def test_a_status_on_the_way_comes_before_the_end_in_one_commit(store: Store) -> None:
    for name in ("first", "second"):
        await store.admit(new(name))
    before = await store.feed.last()
    # The writer has not looked at any of them when the last one is submitted.
    ends = [asyncio.ensure_future(store.finish(terminal("first")))]
    await asyncio.sleep(0)
    store.move(StatusChange("second", "s-1", 0, RolloutStatus.RUNNING, time.time()))
    ends.append(asyncio.ensure_future(store.finish(terminal("second"))))
    assert await asyncio.gather(*ends) == [True, True]
    seen = [e.status for e in await store.feed.after(before) if e.rollout_id == "second"]
    assert seen == ["running", "success"]
    found = await store.find("second")
    assert found is not None
    assert found.status is RolloutStatus.SUCCESS


def test_every_kind_of_change_has_its_place_in_a_commit() -> None:
    known = {kind for kind in Change.__subclasses__() if kind.__module__.startswith("osmosis_ai")}
    assert known == set(CHANGES)
    assert len(CHANGES) == len(known)


async def test_a_change_of_an_unknown_kind_is_refused_where_it_is_submitted(store: Store) -> None:
    class Unknown(Change[None]):
        @classmethod
        async def apply(cls, connection: object, changes: object) -> list[None]:
            raise AssertionError("nobody should ask")

    with pytest.raises(TypeError, match="Unknown"):
        await store._writer.submit(Unknown())
    assert await store.admit(new("r")) is not None


async def test_cancelling_a_submitter_does_not_undo_its_change(store: Store) -> None:
    submitting = asyncio.ensure_future(store.admit(new("r")))
    await asyncio.sleep(0)
    submitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await submitting
    assert await store.admit(new("other")) is not None
    assert await store.known("r") == ["r"]


async def test_only_the_owner_of_the_attempt_may_publish(store: Store) -> None:
    await store.beat("s-1", first=True)
    await store.beat("s-2", first=True)
    await store.admit(new("r"))
    await store.leave("s-1")
    first, second = await asyncio.gather(store.claim("s-2", 60, 60), store.claim("s-2", 60, 60))
    [claimed] = [*first, *second]
    assert (claimed.record.owner, claimed.record.attempt) == ("s-2", 1)
    assert not await store.finish(terminal("r"))
    assert not await store.finish(terminal("r", "s-2", 0))
    assert await store.finish(terminal("r", "s-2", 1))
    assert not await store.beat("s-1")


async def test_a_living_server_keeps_its_rollouts(store: Store) -> None:
    for server in ("s-1", "s-2"):
        await store.beat(server, first=True)
    await store.admit(new("r"))
    assert not await store.claim("s-2", 60, 60)
    assert await store.claim("s-2", 0, 60)


@pytest.mark.parametrize("leaves", [False, True])
async def test_the_downtime_does_not_count_as_retention(store: Store, leaves: bool) -> None:
    await store.beat("s-1", first=True)
    for name, keep in (("before", 0.1), ("meanwhile", 1.0)):
        await store.admit(new(name))
        await store.finish(terminal(name, keep=keep))
    await asyncio.sleep(0.4)
    await (store.leave("s-1") if leaves else store.beat("s-1"))
    await asyncio.sleep(1.0)
    await store.beat("s-2", first=True)
    await store.claim("s-2", 0, 60)
    expired, kept = await store.find("before"), await store.find("meanwhile")
    assert expired is not None
    assert kept is not None
    now = time.time()
    assert (expired.expires_at or now) < now < (kept.expires_at or now)


async def test_an_expired_id_is_free_and_a_kept_one_is_not(store: Store) -> None:
    for name, keep in (("kept", 60.0), ("gone", -1.0)):
        await store.admit(new(name))
        await store.finish(terminal(name, keep=keep))
    assert await store.admit(new("kept")) is None
    assert await store.admit(new("gone")) is not None
    assert await store.known("") == ["kept", "gone"]
    everything = await store.select(Wanted())
    assert [found.id for found in everything] == ["gone", "kept"]


async def test_what_is_submitted_is_written_before_the_store_closes(
    store_url: str, tmp_path: Path
) -> None:
    url = parse_url(store_url, tmp_path)
    async with open_store(url, KEYS) as store:
        waiting = [asyncio.ensure_future(store.admit(new(f"r-{n}"))) for n in range(50)]
        await asyncio.sleep(0)
    assert None not in await asyncio.gather(*waiting)
    with pytest.raises(StoreClosedError):
        await store.admit(new("late"))
    async with open_store(url, KEYS) as again:
        assert len(await again.known("r-")) == 50


async def test_a_store_of_another_version_is_refused(store_url: str, tmp_path: Path) -> None:
    url = parse_url(store_url, tmp_path)
    async with open_database(url) as database, database.begin() as connection:
        await connection.execute(update(schema_version).values(version=99))
    with pytest.raises(StoreError, match="version 99"):
        async with open_store(url, KEYS):
            pytest.fail("it was opened")


@pytest.mark.postgres
async def test_servers_that_start_together_make_one_schema(
    postgres_url: str, tmp_path: Path
) -> None:
    url = parse_url(postgres_url, tmp_path)

    async def use(server: str) -> bool:
        async with open_store(url, KEYS) as store:
            return await store.beat(server, first=True)

    assert await asyncio.gather(*(use(f"s-{n}") for n in range(5))) == [True] * 5


async def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    url = parse_url(f"postgresql://postgres@/none?host={tmp_path}", tmp_path)
    with pytest.raises(StoreError, match="cannot be opened"):
        async with open_store(url, KEYS):
            pytest.fail("it was opened")


async def test_a_sqlite_commit_is_synced(tmp_path: Path) -> None:
    async with (
        open_database(parse_url(None, tmp_path)) as database,
        database.connect() as connection,
    ):
        journal = await connection.exec_driver_sql("PRAGMA journal_mode")
        assert journal.scalar() == "wal"
        synchronous = await connection.exec_driver_sql("PRAGMA synchronous")
        assert synchronous.scalar() == 2  # FULL


def test_keys_make_the_same_tokens_again() -> None:
    nonce = secrets.token_bytes(32)
    again = StoreKeys.from_text("a store key")
    assert KEYS.token(nonce) == again.token(nonce)
    assert KEYS.token(nonce) != StoreKeys.from_text("another").token(nonce)
    assert len(KEYS.token(nonce)) == 43
    sealed = KEYS.seal({"llm_api_key": "sk-1"})
    assert sealed is not None
    assert b"sk-1" not in sealed
    assert again.unseal(sealed) == {"llm_api_key": "sk-1"}
    assert KEYS.seal({}) is None
    assert KEYS.unseal(None) == {}


def test_lost_credentials_say_why(tmp_path: Path) -> None:
    beside = StoreKeys.beside(tmp_path / "rollouts.db")
    kept = StoreKeys.beside(tmp_path / "rollouts.db")
    assert beside.token(b"n") == kept.token(b"n")
    with pytest.raises(CredentialsLostError, match="OSMOSIS_STORE_KEY"):
        beside.unseal(beside.seal({"llm_api_key": "sk-1"}))
    sealed = KEYS.seal({"llm_api_key": "sk-1"})
    for other in (StoreKeys.from_text("another"), beside):
        with pytest.raises(CredentialsLostError, match="cannot be opened"):
            other.unseal(sealed)
    secret = tmp_path / "rollouts.db.secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["rollouts.db.secret"]
    os.truncate(secret, 3)
    with pytest.raises(StoreError, match=r"rollouts\.db\.secret"):
        StoreKeys.beside(tmp_path / "rollouts.db")
