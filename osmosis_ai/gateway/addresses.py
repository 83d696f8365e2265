"""Rollout ids in URLs and file names."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from osmosis_ai.common.identifiers import ensure_single_path_segment
from osmosis_ai.common.model_calls import Kind

_MAX_NAME_BYTES = 255
"""Longest file name on the file systems we know."""

_JUDGE_SUFFIX = ".judge.jsonl"


@dataclass(frozen=True)
class Address:
    """What a request path names: a rollout's endpoint of one kind, and a resource of it.

    ``rollout_id`` is ``None`` on a rollout's own socket, whose path names none.
    """

    rollout_id: str | None
    resource: str
    kind: Kind = "policy"


def checked_rollout_id(rollout_id: str) -> str:
    """Return an id that can name a file and a URL segment.

    Raises:
        ValueError: it is not one path segment, is not valid Unicode, or is too long.
    """
    ensure_single_path_segment(rollout_id)
    try:
        encoded = f"{rollout_id}{_JUDGE_SUFFIX}".encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"rollout_id {rollout_id!r} holds a lone surrogate: {exc}") from exc
    if len(encoded) > _MAX_NAME_BYTES:
        raise ValueError(
            f"rollout_id is {len(encoded) - len(_JUDGE_SUFFIX)} bytes long in UTF-8; use at most "
            f"{_MAX_NAME_BYTES - len(_JUDGE_SUFFIX)}, because it names the record files"
        )
    return rollout_id


def record_name(rollout_id: str, kind: Kind) -> str:
    """Return the name of the file that the calls of an endpoint are appended to.

    Raises:
        ValueError: another rollout's judge may have the same.
    """
    if rollout_id.endswith(".judge"):
        raise ValueError(
            f"rollout_id {rollout_id!r} ends in '.judge', which is how a judge's record file "
            "is named; choose another id"
        )
    return f"{rollout_id}{_JUDGE_SUFFIX if kind == 'judge' else '.jsonl'}"


def rollout_url(base: str, rollout_id: str, kind: Kind = "policy") -> str:
    """Return the OpenAI-style base URL of a rollout's endpoint."""
    middle = "/judge" if kind == "judge" else ""
    return f"{base}/rollouts/{quote(rollout_id, safe='')}{middle}/v1"


def parse_tcp_path(raw_path: str) -> Address | None:
    """Read ``/rollouts/<quoted id>[/judge]/v1/<resource>``; anything else is ``None``."""
    match raw_path.split("/", 5):
        case ["", "rollouts", quoted, "judge", "v1", *rest] if quoted:
            return Address(unquote(quoted), "/".join(rest), "judge")
        case ["", "rollouts", quoted, "v1", *rest] if quoted:
            return Address(unquote(quoted), "/".join(rest))
    return None


def parse_unix_path(raw_path: str) -> Address | None:
    """Read ``/v1/<resource>``; anything else is ``None``."""
    prefix = "/v1/"
    return Address(None, raw_path.removeprefix(prefix)) if raw_path.startswith(prefix) else None


def endpoint_of_url(url: str, bases: Iterable[str]) -> Address | None:
    """Return the endpoint that ``url`` addresses when it is below one of ``bases``, else ``None``.

    Both the base and the full chat-completions URL are understood.
    """
    for base in bases:
        address = (
            parse_tcp_path(url.removeprefix(base).rstrip("/")) if url.startswith(base) else None
        )
        if address is not None and address.resource in {"", "chat/completions", "responses"}:
            return address
    return None
