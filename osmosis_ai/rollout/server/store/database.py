"""The database: SQLite in a file of one server, or PostgreSQL shared by several."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import event, func, insert, inspect, literal, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from osmosis_ai.common.extras import needs_extra
from osmosis_ai.rollout.server.store.errors import StoreError
from osmosis_ai.rollout.server.store.tables import VERSION, metadata, schema_version

STORE_URL_ENV = "OSMOSIS_STORE_URL"
DATABASE_FILE = "rollouts.db"
LOCK_WAIT_SEC = 5.0

_SCHEMA_LOCK = 0x6F736D31
_BUSY_SEC = 30


def parse_url(url: str | None, root: Path) -> URL:
    """The database that ``url`` means; by default a file under ``root``.

    Raises:
        ValueError: it is no URL of SQLite or PostgreSQL.
    """
    if url is None:
        return URL.create("sqlite+aiosqlite", database=str(root / DATABASE_FILE))
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise ValueError("store_url is not a database URL (its value is not shown)") from exc
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        return parsed.set(drivername="postgresql+asyncpg")
    if kind == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed.set(drivername="sqlite+aiosqlite")
    raise ValueError(
        f"store_url must be postgresql://… or sqlite:///path/to/file.db, got one of {kind!r}"
    )


@asynccontextmanager
async def open_database(url: URL) -> AsyncIterator[AsyncEngine]:
    """Connect, and bring the schema up to date.

    Raises:
        StoreError: the database cannot be had, is another server's, or is of a
            newer version.
    """
    if url.get_backend_name() == "sqlite":
        path = Path(str(url.database))
        path.parent.mkdir(parents=True, exist_ok=True)
        async with _only_server(path):
            database = create_async_engine(url)
            event.listen(database.sync_engine, "connect", _configure_sqlite)
            async with _ready(database, str(path)):
                yield database
        return
    with needs_extra("postgres", "A store in PostgreSQL", "asyncpg"):
        database = create_async_engine(url, pool_size=4, max_overflow=4, pool_pre_ping=True)
    async with _ready(database, url.render_as_string(hide_password=True)):
        yield database


@asynccontextmanager
async def _ready(database: AsyncEngine, name: str) -> AsyncIterator[None]:
    try:
        try:
            async with database.begin() as connection:
                await _upgrade(connection)
        except (SQLAlchemyError, OSError) as exc:
            raise StoreError(f"the store {name} cannot be opened: {exc}") from exc
        yield
    finally:
        await database.dispose()


async def _upgrade(connection: AsyncConnection) -> None:
    if connection.dialect.name == "postgresql":
        await connection.execute(select(func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
    if not await connection.run_sync(lambda c: inspect(c).has_table(schema_version.name)):
        await connection.run_sync(metadata.create_all)
        await connection.execute(insert(schema_version).values(version=VERSION))
        return
    found = (await connection.execute(select(schema_version.c.version))).scalar_one()
    if found != VERSION:
        raise StoreError(
            f"the store has schema version {found} and this server knows {VERSION}: run the "
            "version of osmosis-ai that wrote it, or name another store"
        )


def _configure_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"busy_timeout={_BUSY_SEC * 1000}",
        "foreign_keys=ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@asynccontextmanager
async def _only_server(path: Path) -> AsyncIterator[None]:
    """Hold the database for this process; the kernel lets go when the process dies."""
    deadline = time.monotonic() + LOCK_WAIT_SEC
    lock = FileLock(path.with_name(f"{path.name}.lock"), mode=0o600, thread_local=False)
    while not _acquired(lock):
        if time.monotonic() > deadline:
            raise StoreError(
                f"another rollout server holds {path}: give this one a store of its own (another "
                f"_OSMOSIS_ROLLOUT_ARTIFACT_ROOT, or {STORE_URL_ENV}=sqlite:///…), or let both "
                f"share one ({STORE_URL_ENV}=postgresql://…)"
            )
        await asyncio.sleep(0.1)
    try:
        yield
    finally:
        lock.release()


def _acquired(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True


def database_now(dialect: str) -> Any:
    """The time by the database's own clock, which servers of one store share."""
    if dialect == "postgresql":
        return func.extract("epoch", func.clock_timestamp())
    return literal(time.time())
