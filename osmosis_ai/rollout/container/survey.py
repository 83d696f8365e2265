"""A look around a sandbox before a task's tests run in it, by the runtime's own interpreter.

The host passes this file's text to that interpreter as a program, so that it depends on nothing
that an agent may have changed. Its arguments are the seconds since the agent began, the time of
that, and a directory to close, or none. It prints a JSON object: ``processes`` holds those that
began after the agent did, by number and name, and ``more`` how many were left out.
"""

import contextlib
import json
import os
import stat
import sys
import time
from pathlib import Path

MAX_PROCESSES = 50
MAX_DELAY_SEC = 10.0
"""Between the host's question and the look; clocks may differ by more."""
_SLACK_SEC = 0.05
"""A process's start is told in hundredths of a second."""
_NAME_BYTES = 120
_PARENT, _STARTED = 1, 19
"""Of /proc/<pid>/stat, counted from the field behind the name."""


def processes(agent_sec: float) -> tuple[list[str], int]:
    """What began within the last ``agent_sec`` seconds and still runs, without this program."""
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    found: list[str] = []
    more = 0
    own = _own_line() | {1}  # the first is the supervisor, or the image's own program
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in own:
            continue
        try:
            line = Path(f"/proc/{name}/stat").read_bytes()
            command = Path(f"/proc/{name}/cmdline").read_bytes()[:_NAME_BYTES]
        except OSError:  # it has ended
            continue
        state, *_ = fields = line.rpartition(b")")[2].split()
        started = int(fields[_STARTED]) / os.sysconf("SC_CLK_TCK")
        if state in {b"Z", b"X"} or uptime - started > agent_sec + _SLACK_SEC:
            continue
        if len(found) == MAX_PROCESSES:
            more += 1
            continue
        shown = command.replace(b"\0", b" ").decode("utf-8", "replace").strip()
        kernel_name = line.partition(b"(")[2].rpartition(b")")[0].decode("utf-8", "replace")
        found.append(f"{name} {shown or kernel_name}")
    return found, more


def _own_line() -> set[int]:
    """This process and those that it comes from."""
    line: set[int] = set()
    process = os.getpid()
    while process > 0:
        line.add(process)
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        process = int(fields[_PARENT])
    return line


def close(directory: str) -> None:
    """Make it a directory of root's that nobody else writes to; a link is replaced."""
    path = Path(directory)
    if not stat.S_ISDIR(_mode(path)):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchown(descriptor, 0, 0)
        os.fchmod(descriptor, 0o755)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def main(agent_sec: str, asked_at: str, closed: str) -> None:
    if closed:
        close(closed)
    # A busy machine takes its time between the question and the look.
    since = min(max(time.time() - float(asked_at), 0.0), MAX_DELAY_SEC)
    found, more = processes(float(agent_sec) + since)
    print(json.dumps({"processes": found, "more": more}))


if __name__ == "__main__":
    main(*sys.argv[1:])
