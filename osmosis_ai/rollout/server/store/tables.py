"""The tables. Times are seconds since the epoch; JSON is kept as bytes."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

VERSION = 1

metadata = MetaData()

_number = BigInteger().with_variant(Integer, "sqlite")
# Names are compared by code point on every database, so that prefixes are ranges.
_name = String().with_variant(String(collation="C"), "postgresql")

schema_version = Table("osmosis_schema", metadata, Column("version", Integer, nullable=False))

rollouts = Table(
    "rollouts",
    metadata,
    Column("number", _number, primary_key=True, autoincrement=True),
    Column("id", _name, nullable=False, unique=True),
    Column("protocol", String, nullable=False),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("nonce", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("request", LargeBinary),
    Column("sealed", LargeBinary),
    Column("rerun", Boolean, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("owner", String, nullable=False),
    Column("status", String, nullable=False),
    Column("admitted_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("lease_until", Double),
    Column("disposition", String),
    Column("result", LargeBinary),
    Column("ending", LargeBinary),  # what records show as their summary
    Column("expires_at", Double),
    sqlite_autoincrement=True,
)
Index(
    "rollouts_unfinished",
    rollouts.c.owner,
    sqlite_where=rollouts.c.finished_at.is_(None),
    postgresql_where=rollouts.c.finished_at.is_(None),
)
Index("rollouts_finished", rollouts.c.finished_at)
Index("rollouts_expiring", rollouts.c.expires_at)

callbacks = Table(
    "callbacks",
    metadata,
    Column("rollout", ForeignKey("rollouts.number", ondelete="CASCADE"), nullable=False),
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False),
    Column("url", String, nullable=False),
    Column("body", LargeBinary),
    Column("sealed", LargeBinary),
    Column("created_at", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_at", Double, nullable=False),
    Column("problem", LargeBinary),
    UniqueConstraint("rollout", "kind"),
)
Index(
    "callbacks_pending",
    callbacks.c.rollout,
    sqlite_where=callbacks.c.state == "pending",
    postgresql_where=callbacks.c.state == "pending",
)

servers = Table(
    "servers",
    metadata,
    Column("id", String, primary_key=True),
    Column("started_at", Double, nullable=False),
    Column("heartbeat_at", Double, nullable=False),
    Column("left", Boolean, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", _number, primary_key=True, autoincrement=True),
    Column("rollout_id", _name, nullable=False),
    Column("status", String, nullable=False),
    Column("at", Double, nullable=False),
    sqlite_autoincrement=True,
)
