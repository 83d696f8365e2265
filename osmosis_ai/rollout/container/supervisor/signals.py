"""Signals: which reach the supervisor, and how a command gets them as the engine gives them."""

import os
import signal

# An interpreter ignores these for itself, and a program that it starts would inherit that.
_PYTHONS = (signal.SIGPIPE, signal.SIGXFSZ)
# What a process of the sandbox may send to every other one.
_BROADCAST = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGALRM,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
)

END_COMMAND = signal.SIGRTMIN + 1
"""Tells a command's guard to end the command alone; no program sends it by chance."""


def shield() -> None:
    """Outlive what any process of the sandbox may send.

    A sandbox's first process is spared default actions by the kernel itself. Elsewhere a
    handler does it, which a program that is started does not inherit.
    """
    for number in _BROADCAST:
        if not _is_ignored(number):
            signal.signal(number, signal.SIG_DFL if os.getpid() == 1 else _nothing)


def unshield() -> None:
    """Have the signals as the engine gave them; for a fork that is to become a command."""
    for number in (*_BROADCAST, signal.SIGCHLD):
        if not _is_ignored(number):
            signal.signal(number, signal.SIG_DFL)
    for number in _PYTHONS:
        signal.signal(number, signal.SIG_DFL)


def as_interpreter() -> None:
    """Have the signals as an interpreter sets them that was just started."""
    for number in _PYTHONS:
        signal.signal(number, signal.SIG_IGN)
    if not _is_ignored(signal.SIGINT):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def _nothing(*_: object) -> None:
    """Wakes the loop, which finds nothing to do."""
