"""Printing: results to standard output, everything else to standard error.

All that the command prints passes here, and is made printable: it may come from a sandbox.
"""

import json
import sys
from typing import IO, TYPE_CHECKING, Any

import typer

from osmosis_ai.common.texts import printable

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN_WIDTH = 200


def print_json(document: Any) -> None:
    """Print one JSON document, which is then all that standard output holds."""
    # Between its strings JSON has no other control character, and in them an escape means the same.
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(printable(text, keep="\n") + "\n")


def show(text: str) -> None:
    """Print a line of a result."""
    sys.stdout.write(f"{printable(text)}\n")


def say(text: str) -> None:
    """Tell the person at the terminal something that is not a result."""
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()


def confirm(question: str) -> None:
    """Ask on standard error; anything but yes ends the command."""
    typer.confirm(printable(question), abort=True, err=True)


def show_help(context: typer.Context) -> None:
    """Print a group's help where no command of it is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def result_console() -> "Console":
    """A console on standard output; wide where no terminal sets the width."""
    return _console(sys.stdout)


def talk_console() -> "Console":
    """A console on standard error, for what is not a result."""
    return _console(sys.stderr)


def _console(file: IO[str]) -> "Console":
    from osmosis_ai.cli.console import PrintableConsole

    # Names and messages are somebody else's text: nothing in them is markup.
    width = None if file.isatty() else _PLAIN_WIDTH
    return PrintableConsole(file=file, width=width, highlight=False, markup=False, emoji=False)


def duration(seconds: float) -> str:
    """Write a duration as a person reads it: ``0.4s``, ``12s``, ``3m 05s``, ``2h 10m``, ``4d``."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 48 * 3600:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d"


def size(number: int) -> str:
    """Write a number of bytes with the unit that suits it."""
    value = float(number)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def cause(text: str) -> str:
    """What a message says in one line: its first, and where that only announces, its last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{first_line(lines[0])} {first_line(lines[-1])}"
    return first_line(text)


def first_line(text: str, limit: int = 300) -> str:
    """The first line of a text that has something on it, shortened."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
