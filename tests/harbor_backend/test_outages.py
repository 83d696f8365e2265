"""Whether something did not answer, or was asked wrongly; and how it is said."""

import errno
import subprocess

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from harbor_backend.outages import hide_credentials, is_network_failure, is_outage, reasons

REQUEST = httpx.Request("GET", "https://registry.example/v2/")


def command(stderr: str | bytes, *arguments: str) -> subprocess.CalledProcessError:
    return subprocess.CalledProcessError(128, ["git", "clone", *arguments], b"", stderr)


def answered(status: int) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError("no", request=REQUEST, response=httpx.Response(status))


def raised_from(cause: BaseException) -> BaseException:
    try:
        raise ValueError("the dataset cannot be read") from cause
    except ValueError as exc:
        return exc


OUTAGES = {
    "a refused connection": ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
    "a time-out": TimeoutError(),
    "a full disk": OSError(errno.ENOSPC, "No space left on device"),
    "a client's refused connection": httpx.ConnectError("refused"),
    "a client's time-out": httpx.ReadTimeout("slow"),
    "too many requests": answered(429),
    "a server's own fault": answered(503),
    "a command that is not there": FileNotFoundError(errno.ENOENT, "none", "git"),
    "a name that does not resolve": command("fatal: Could not resolve host: github.example"),
    "a command's refused connection": command(
        b"ssh: connect to host x port 22: Connection refused\n"
    ),
    "a command's 429": command("error: RPC failed; HTTP 429 curl 22 The requested URL returned"),
    "behind another": raised_from(httpx.ConnectError("refused")),
    "in a group": BaseExceptionGroup("g", [ValueError("x"), ExceptionGroup("h", [OSError(5)])]),
}
MISTAKES = {
    "nothing of that name": answered(404),
    "not allowed": answered(403),
    "no such file": FileNotFoundError(errno.ENOENT, "none", "/tasks/x"),
    "a wrong value": ValueError("no dataset x"),
    "a repository that is not there": command("fatal: repository 'https://x/y/' not found"),
    "a commit that is not there": command("fatal: remote error: upload-pack: not our ref 0123"),
    "a group of them": ExceptionGroup("g", [ValueError("x"), KeyError("y")]),
}


@pytest.mark.parametrize("case", OUTAGES)
def test_what_does_not_answer(case: str) -> None:
    assert is_outage(OUTAGES[case])


@pytest.mark.parametrize("case", MISTAKES)
def test_what_was_asked_wrongly(case: str) -> None:
    assert not is_outage(MISTAKES[case])


def test_exceptions_that_lead_to_each_other_end() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert not is_outage(first)
    assert reasons(first).startswith("a")


@pytest.mark.parametrize(
    ("text", "outage"),
    [
        ("failed to resolve reference: dial tcp: lookup r.example: no such host", True),
        ("toomanyrequests: You have reached your pull rate limit", True),
        ("services must be a mapping", False),
    ],
)
def test_what_a_command_printed(text: str, outage: bool) -> None:
    assert is_network_failure(text) is outage


class Model(BaseModel):
    number: int


def invalid() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Model.model_validate({"number": "x"})
    return caught.value


SAID = {
    "a group": (
        ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("a"), ValueError("b")]),
        "a; b",
    ),
    "the same twice": (ExceptionGroup("g", [ValueError("a"), ValueError("a")]), "a"),
    "what led to it": (
        raised_from(OSError(errno.EIO, "broken")),
        "the dataset cannot be read: [Errno 5] broken",
    ),
    "what it says already": (raised_from(ValueError("the dataset")), "the dataset cannot be read"),
    "nothing": (TimeoutError(), "TimeoutError: "),
    "a key": (KeyError("tasks"), "KeyError: 'tasks'"),
    "several lines": (ValueError("a\n  b"), "a b"),
    "a model": (
        invalid(),
        "number: Input should be a valid integer, unable to parse string as an integer",
    ),
    "a command": (
        command("Cloning into '/tmp/x'...\nhint: try\nfatal: repository not found\n", "-q"),
        "git clone failed: fatal: repository not found",
    ),
    "a command with credentials": (
        command("fatal: unable to access 'https://me:s3cret@x.example/y': no", "https://me:s3cret"),
        "git clone failed: fatal: unable to access 'https://***@x.example/y': no",
    ),
    "a silent command": (command(""), "git clone failed: it said nothing"),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_said(case: str) -> None:
    exc, text = SAID[case]
    assert reasons(exc) == text


def test_what_is_said_is_bounded() -> None:
    assert len(reasons(ValueError("x" * 10_000))) == 500
    assert len(reasons(command("fatal: " + "x" * 10_000))) < 600


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("https://token@host/x", "https://***@host/x"),
        ("https://host/x?api_key=abc&v=1", "https://host/x?api_key=***&v=1"),
        ("git@host:org/name", "git@host:org/name"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_credentials_are_hidden(text: str, hidden: str) -> None:
    assert hide_credentials(text) == hidden
