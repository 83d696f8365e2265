"""URLs that hold credentials: which do, what these are, and how they read without."""

import re
from dataclasses import dataclass
from urllib.parse import unquote, unquote_plus

HIDDEN = "[REDACTED]"

_HEAD = re.compile(r"(?P<before>[^/?#]*//)(?P<userinfo>[^/?#]*)@")
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_SECRET_WORDS = frozenset(
    ["auth", "authorization", "bearer", "code", "jwt", "pass", "pwd", "sas", "sig"]
)
_SECRET_ENDS = ("credential", "key", "passwd", "password", "secret", "signature", "token")


@dataclass(frozen=True)
class UrlSecrets:
    """A URL without its credentials, and these, as written and as they are meant."""

    shown: str
    secrets: frozenset[str]


def url_secrets(url: str) -> UrlSecrets:
    """Take the user and password out of a URL, and query parameters named like a key.

    Works on any text, also where it is no URL, such as ``litellm/…?api_key=…``.
    """
    found: set[str] = set()
    if head := _HEAD.match(url):
        user, colon, password = head["userinfo"].partition(":")
        # A user alone is a key, as in https://KEY@host.
        secret = password if colon else user
        found |= {secret, unquote(secret)}
        url = f"{head['before']}{HIDDEN}@{url[head.end() :]}"
    before, mark, rest = url.partition("?")
    if not mark:
        return UrlSecrets(url, frozenset(found - {""}))
    query, fragment_mark, fragment = rest.partition("#")
    parameters = []
    for parameter in query.split("&"):
        name, equals, value = parameter.partition("=")
        if value and _is_secret(unquote_plus(name)):
            found |= {value, unquote_plus(value), unquote(value)}
            value = HIDDEN
        parameters.append(f"{name}{equals}{value}")
    shown = f"{before}?{'&'.join(parameters)}{fragment_mark}{fragment}"
    return UrlSecrets(shown, frozenset(found - {""}))


def without_secrets(url: str) -> str:
    """The URL as it may be shown and stored."""
    return url_secrets(url).shown


def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDS) for word in words)
