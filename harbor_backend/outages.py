"""Telling an outage from a mistake, in what others' clients raise and print."""

import re
import subprocess
from collections.abc import Iterator

from pydantic import ValidationError

_MAX_TEXT = 500
_MAX_LINES = 5

_NETWORK = re.compile(
    r"could ?n[o']t resolve|name or service not known|temporary failure in name resolution"
    r"|no such host|connection (?:was )?(?:refused|reset|timed out|closed)|failed to connect"
    r"|unable to connect|network is unreachable|no route to host|operation timed out"
    r"|i/o timeout|tls handshake timeout|gnutls_handshake|ssl_connect|ssl_error_syscall"
    r"|early eof|unexpected eof|unexpected disconnect|remote end hung up unexpectedly"
    r"|rpc failed|kex_exchange_identification|ssh: connect to host|deadline exceeded"
    r"|too many requests|toomanyrequests|service unavailable|bad gateway|gateway time-?out"
    r"|returned error: (?:429|5\d\d)|status(?: code)?:? (?:429|5\d\d)",
    re.IGNORECASE,
)
_MISTAKES = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)
_NO_COMPLAINT = ("Cloning into", "hint:", "warning:")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"]+@")
_QUERY = re.compile(r"((?:token|key|secret|password)[^=&\s]*=)[^&\s'\"]+", re.IGNORECASE)


def is_network_failure(text: str) -> bool:
    """Whether what a command printed says that something could not be reached."""
    return _NETWORK.search(text) is not None


def is_outage(exc: BaseException) -> bool:
    """Whether an exception says that something did not answer, and not that it was asked wrongly.

    A refused connection, a name that does not resolve, a time-out, 429 and 5xx, a
    command that is not there; also behind another exception, or in a group of them.
    """
    return any(map(_is_outage, _behind(exc)))


def reasons(exc: BaseException) -> str:
    """What an exception says, in one line without credentials; of a group, each of its own.

    What it was raised from is said too, where its own text does not hold that.
    """
    if isinstance(exc, BaseExceptionGroup):
        texts = dict.fromkeys(reasons(each) for each in exc.exceptions)
        return "; ".join(texts)[:_MAX_TEXT]
    first = list(_behind(exc, groups=False))[-1]
    text, cause = _text(exc), _text(first)
    return text if cause in text else f"{text}: {cause}"


def hide_credentials(text: str) -> str:
    """A text whose URLs hold neither a user nor a key."""
    return _QUERY.sub(r"\1***", _CREDENTIALS.sub("***@", text))


def _text(exc: BaseException) -> str:
    if isinstance(exc, subprocess.CalledProcessError):
        return _said_by(exc)
    if isinstance(exc, ValidationError):
        errors = exc.errors(include_url=False, include_input=False)
        text = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in errors)
    else:
        text = str(exc)
    text = hide_credentials(" ".join(text.split())[:_MAX_TEXT])
    return text if text and not isinstance(exc, KeyError) else f"{type(exc).__name__}: {text}"


def _said_by(exc: subprocess.CalledProcessError) -> str:
    """The last lines of a command's complaint; its arguments may hold credentials."""
    lines = [line.strip() for line in _output(exc).splitlines()]
    wrong = [line for line in lines if line and not line.startswith(_NO_COMPLAINT)]
    said = " ".join(wrong[-_MAX_LINES:]) or "it said nothing"
    command = exc.cmd[:2] if isinstance(exc.cmd, list) else [str(exc.cmd).partition(" ")[0]]
    return f"{' '.join(command)} failed: {hide_credentials(said)[-_MAX_TEXT:]}"


def _output(exc: subprocess.CalledProcessError) -> str:
    output = exc.stderr or exc.stdout or ""
    return output.decode(errors="replace") if isinstance(output, bytes) else str(output)


def _behind(exc: BaseException, *, groups: bool = True) -> Iterator[BaseException]:
    """An exception, those that led to each, and those of a group."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting.append(each.__cause__ or (None if each.__suppress_context__ else each.__context__))
        if groups and isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def _is_outage(exc: BaseException) -> bool:
    if isinstance(exc, subprocess.CalledProcessError):
        return is_network_failure(_output(exc))
    status = _status_of(exc)
    if status is not None:
        return status in {408, 425, 429} or status >= 500
    if isinstance(exc, FileNotFoundError):
        return exc.filename in {"git", "docker"}  # the machine lacks the command
    kinds = {cls.__name__ for cls in type(exc).__mro__}
    return (
        isinstance(exc, OSError) and not isinstance(exc, _MISTAKES)
    ) or "TransportError" in kinds  # httpx, through which registries are asked


def _status_of(exc: BaseException) -> int | None:
    """The HTTP status in an exception of any client, where it has one."""
    response = getattr(exc, "response", None)
    for holder, name in ((response, "status_code"), (exc, "status"), (exc, "code")):
        value = str(getattr(holder, name, ""))
        if value.isdecimal() and 100 <= int(value) < 600:
            return int(value)
    return None
