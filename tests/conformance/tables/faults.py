"""Workflows that raise."""

import re

from osmosis_ai.rollout import RolloutErrorCategory
from tests.conformance.model import AGENT, TIMEOUT, VALIDATION, Case, failed, matches

_FAULTS: dict[str, tuple[str, RolloutErrorCategory, str | re.Pattern[str]]] = {
    "value-error": ("ValueErrorRaised", VALIDATION, "the value is wrong"),
    "type-error": ("TypeErrorRaised", VALIDATION, "the type is wrong"),
    "assertion-error": ("AssertionErrorRaised", VALIDATION, "it should hold"),
    "own-timeout": ("OwnTimeout", TIMEOUT, "the tool took too long"),
    "own-timeout-scope": ("OwnTimeoutScope", TIMEOUT, "TimeoutError"),
    "runtime-error": ("RuntimeErrorRaised", AGENT, "the agent gave up\nin two lines"),
    "key-error": ("KeyErrorRaised", AGENT, "'answer'"),
    "os-error": ("OSErrorRaised", AGENT, "[Errno 28] No space left on device"),
    "connection-error": ("ConnectionErrorRaised", AGENT, "the policy hung up"),
    # No gateway saw it: what would excuse the rollout is the word of its own code.
    "service-away": ("ModelAway", AGENT, "the model answered 503"),
    "service-refuses-the-request": ("ModelFull", AGENT, "the model answered 400"),
    "pydantic-error": (
        "PydanticError",
        VALIDATION,
        matches(r"1 validation error\(s\) for _Point: x: Input should be a valid integer.*"),
    ),
    "group-of-one-kind": (
        "GroupOfOneKind",
        VALIDATION,
        "two tools failed (2 sub-exceptions): ValueError: a; TypeError: b",
    ),
    "group-mixed": (
        "GroupMixed",
        AGENT,
        "two tools failed (2 sub-exceptions): ValueError: a; TimeoutError: b",
    ),
    "task-group": (
        "TaskGroupFailed",
        VALIDATION,
        "unhandled errors in a TaskGroup (1 sub-exception): ValueError: a child task failed",
    ),
    "empty-text": ("EmptyText", AGENT, "RuntimeError"),
    "broken-text": ("BrokenText", AGENT, "_Silent (its text cannot be had: RuntimeError)"),
    "surrogate-text": ("SurrogateText", VALIDATION, "lone \ud800 surrogate"),
    "non-utf8-text": ("NonUtf8Text", VALIDATION, "file caf\udce9 \x00 \U0001f600"),
    "long-text": (
        "LongText",
        AGENT,
        matches(r"x{8172} \[… shortened from 300000 characters …\] x{8172}"),
    ),
    "constructor": ("ConstructorRaises", VALIDATION, "cannot be built"),
    "not-async": ("NotAsync", VALIDATION, "raised before anything was awaited"),
    "sys-exit": ("SysExit", AGENT, "Workflow called sys.exit(3)"),
    "sys-exit-text": ("SysExitText", AGENT, "Workflow called sys.exit('goodbye')"),
    "cancels-its-task": ("CancelsItsTask", AGENT, "Workflow raised CancelledError by itself"),
    "group-of-exits": (
        "GroupOfExits",
        AGENT,
        "Workflow raised BaseExceptionGroup: tools exited (2 sub-exceptions)",
    ),
    "sys-exit-in-thread": ("SysExitInThread", AGENT, "Workflow called sys.exit(5)"),
    "cancels-itself": ("CancelsItself", AGENT, "Workflow raised CancelledError by itself"),
}

CASES = [
    Case(f"fault-{name}", f"faults:{workflow}", failed(category, message), "graders:One")
    for name, (workflow, category, message) in _FAULTS.items()
]
