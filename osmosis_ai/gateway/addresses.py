"""Rollout ids in URLs and file names."""

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from osmosis_ai.rollout.types.identifiers import ensure_single_path_segment

_MAX_NAME_BYTES = 255
"""Longest file name on the file systems we know."""


@dataclass(frozen=True)
class Address:
    """Whom a request path means: a rollout (or none, on its own socket) and a resource."""

    rollout_id: str | None
    resource: str


def checked_rollout_id(rollout_id: str) -> str:
    """Return an id that can name a file and a URL segment.

    Raises:
        ValueError: it is not one path segment, is not valid Unicode, or is too long.
    """
    ensure_single_path_segment(rollout_id)
    try:
        encoded = f"{rollout_id}.jsonl".encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"rollout_id {rollout_id!r} holds a lone surrogate: {exc}") from exc
    if len(encoded) > _MAX_NAME_BYTES:
        raise ValueError(
            f"rollout_id is {len(encoded) - 6} bytes long in UTF-8; use at most "
            f"{_MAX_NAME_BYTES - 6}, because it names the record file"
        )
    return rollout_id


def rollout_url(host: str, port: int, rollout_id: str) -> str:
    """The OpenAI-style base URL of a rollout; wildcard hosts become their loopback."""
    return f"http://{netloc(host, port)}/rollouts/{quote(rollout_id, safe='')}/v1"


def netloc(host: str, port: int) -> str:
    """``host:port`` as it stands in a URL."""
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_tcp_path(raw_path: str) -> Address | None:
    """Read ``/rollouts/<quoted id>/v1/<resource>``; anything else is ``None``."""
    match raw_path.split("/", 4):
        case ["", "rollouts", quoted, "v1", resource] if quoted:
            return Address(unquote(quoted), resource)
        case ["", "rollouts", quoted, "v1"] if quoted:
            return Address(unquote(quoted), "")
    return None


def parse_unix_path(raw_path: str) -> Address | None:
    """Read ``/v1/<resource>``; anything else is ``None``."""
    prefix = "/v1/"
    return Address(None, raw_path.removeprefix(prefix)) if raw_path.startswith(prefix) else None


def rollout_of_url(url: str, own_netloc: str) -> str | None:
    """The rollout that ``url`` addresses when it points at ``own_netloc``.

    Both the base and the full chat-completions URL are understood.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.netloc != own_netloc:
        return None
    address = parse_tcp_path(parts.path.rstrip("/"))
    if address is None or address.resource not in {"", "chat/completions"}:
        return None
    return address.rollout_id
