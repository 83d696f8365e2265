"""Where an upstream is and how to get there, checked before any call."""

from urllib.request import getproxies, proxy_bypass

from yarl import URL

from osmosis_ai.common.addresses import is_loopback


def checked_base(url: str) -> URL:
    """The base URL in what a user wrote; the full chat-completions URL is understood too.

    Raises:
        ValueError: it is not a URL, or names no host.
    """
    try:
        base = URL(url, encoded=True)
        host = base.host
    except ValueError as exc:
        raise ValueError(f"upstream {url!r} is not a URL: {exc}") from exc
    if not host:
        raise ValueError(f"upstream {url!r} names no host")
    path = base.raw_path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return base.with_path(path, encoded=True, keep_query=True)


def checked_key(api_key: str | None) -> str | None:
    """A key that can stand in a header.

    Raises:
        ValueError: it cannot; its value is not in the message.
    """
    if api_key is None:
        return None
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise ValueError(
            "api_key must be non-empty printable ASCII without spaces (its value is not shown); "
            "pass None for an upstream that needs no key"
        )
    return api_key


def proxy_for(base: URL) -> str | None:
    """The machine's proxy for a server; none for loopback, where policy servers live."""
    host = base.host or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(base.scheme) or proxies.get("all")
