"""Faults that tests ask for, by the name of the sandbox they are to hit."""

import re
import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum

from .errors import SandboxConnectionError, SandboxError


class Fault(StrEnum):
    """What goes wrong.

    ``CREATE_SLOW``: a creation takes ``seconds`` longer. ``CREATE_LOST``: it
    fails after the sandbox was made. ``CREATE_REFUSED``: it fails before.
    ``EXEC_OVERRUN``: a command does nothing, is taken to have run to its budget, and killed.
    ``EXEC_LOST``: the connection breaks while a command runs. ``TERMINATE_FAILS``:
    a sandbox is not terminated.
    """

    CREATE_SLOW = "create-slow"
    CREATE_LOST = "create-lost"
    CREATE_REFUSED = "create-refused"
    EXEC_OVERRUN = "exec-overrun"
    EXEC_LOST = "exec-lost"
    TERMINATE_FAILS = "terminate-fails"


@dataclass
class Rule:
    """One fault: for names that match ``name``, commands that match ``command``, ``times`` times.

    ``hits`` counts how often it came about.
    """

    fault: Fault
    name: str = ".*"
    command: str = ".*"
    times: int = 1
    seconds: float = 0.0
    hits: int = field(default=0, init=False)


_rules: list[Rule] = []
_lock = threading.Lock()


def inject(rule: Rule) -> Rule:
    """Let a fault happen; returns the rule, whose ``hits`` tell whether it did."""
    with _lock:
        _rules.append(rule)
    return rule


def clear() -> None:
    """Let everything work."""
    with _lock:
        _rules.clear()


def take(fault: Fault, name: str, command: str = "") -> Rule | None:
    """The rule that hits now, counted; ``None`` when none does."""
    with _lock:
        for rule in _rules:
            if (
                rule.fault is fault
                and rule.hits < rule.times
                and re.search(rule.name, name)
                and re.search(rule.command, command, re.DOTALL)
            ):
                rule.hits += 1
                return rule
    return None


def before_create(name: str) -> None:
    """Faults of a creation, before anything was made."""
    if slow := take(Fault.CREATE_SLOW, name):
        time.sleep(slow.seconds)
    if take(Fault.CREATE_REFUSED, name):
        raise SandboxError(f"injected: no capacity for {name}")


def after_create(name: str) -> None:
    """Faults of a creation, when the sandbox is there."""
    if take(Fault.CREATE_LOST, name):
        raise SandboxConnectionError(f"injected: the answer to the creation of {name} was lost")


def before_terminate(name: str) -> None:
    """Faults of an ending."""
    if take(Fault.TERMINATE_FAILS, name):
        raise SandboxConnectionError(f"injected: {name} was not terminated")
