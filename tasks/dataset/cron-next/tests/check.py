"""Runs the submission on expressions that the agent never saw.

The submission runs as an unprivileged user on its own copy, so it cannot read the cases here.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

SUBMISSION = Path("/app/cronnext.py")
NOBODY = 65534

FIRING: list[tuple[str, str, list[str]]] = [
    ("* * * * *", "2026-12-31 23:58", ["2026-12-31 23:59", "2027-01-01 00:00", "2027-01-01 00:01"]),
    ("30 8 * * *", "2026-03-01 08:30", ["2026-03-02 08:30", "2026-03-03 08:30"]),
    ("30 8 * * *", "2026-03-01 08:29", ["2026-03-01 08:30"]),
    (
        "*/25 * * * *",
        "2026-03-01 08:20",
        ["2026-03-01 08:25", "2026-03-01 08:50", "2026-03-01 09:00"],
    ),
    (
        "5-20/7,59 3 * * *",
        "2026-03-01 03:05",
        ["2026-03-01 03:12", "2026-03-01 03:19", "2026-03-01 03:59"],
    ),
    ("0 0 29 2 *", "2026-01-01 00:00", ["2028-02-29 00:00", "2032-02-29 00:00"]),
    (
        "0 0 31 * *",
        "2026-01-31 00:00",
        ["2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00"],
    ),
    ("0 12 * * 0", "2026-03-01 12:00", ["2026-03-08 12:00", "2026-03-15 12:00"]),
    ("0 12 * * 7", "2026-03-01 11:59", ["2026-03-01 12:00", "2026-03-08 12:00"]),
    (
        "0 12 * * 5-7",
        "2026-03-05 00:00",
        ["2026-03-06 12:00", "2026-03-07 12:00", "2026-03-08 12:00", "2026-03-13 12:00"],
    ),
    (
        "0 0 13 * 5",
        "2026-02-01 00:00",
        [
            "2026-02-06 00:00",
            "2026-02-13 00:00",
            "2026-02-20 00:00",
            "2026-02-27 00:00",
            "2026-03-06 00:00",
            "2026-03-13 00:00",
        ],
    ),
    ("0 0 1 * *", "2026-11-15 10:00", ["2026-12-01 00:00", "2027-01-01 00:00"]),
    (
        "0 0 */10 6 1",
        "2026-06-01 00:00",
        [
            "2026-06-08 00:00",
            "2026-06-11 00:00",
            "2026-06-15 00:00",
            "2026-06-21 00:00",
            "2026-06-22 00:00",
        ],
    ),
    ("0 0 13 * 0-6", "2026-06-12 00:00", ["2026-06-13 00:00", "2026-06-14 00:00"]),
    (
        "0,0,30  6,18\t1 1 *",
        "2026-01-01 06:00",
        ["2026-01-01 06:30", "2026-01-01 18:00", "2026-01-01 18:30", "2027-01-01 06:00"],
    ),
]

SPARSE: list[tuple[str, str, int, list[str]]] = [
    ("0 0 30 2 *", "2026-01-01 00:00", 1, []),
    ("0 0 29 2 *", "2026-01-01 00:00", 9, ["2028-02-29 00:00", "2032-02-29 00:00"]),
]

INVALID = [
    "",
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "* * * * 8",
    "10-5 * * * *",
    "*/0 * * * *",
    "5/10 * * * *",
    "1,,2 * * * *",
    "-1 * * * *",
    "* * * jan *",
]


def run(room: Path, arguments: list[str]) -> tuple[list[str], int]:
    try:
        done = subprocess.run(
            [sys.executable, "-B", str(room / "cronnext.py"), *arguments],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=10,
            cwd=room,
            env={"PATH": os.environ["PATH"]},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
    except subprocess.TimeoutExpired:
        return ["(took too long)"], -1
    return done.stdout.splitlines(), done.returncode


def main() -> int:
    print(f"network interfaces: {[name for _, name in socket.if_nameindex()]}")
    if SUBMISSION.is_symlink() or not SUBMISSION.is_file():
        print(f"{SUBMISSION} is missing")
        return 1
    room = Path(tempfile.mkdtemp())
    room.chmod(0o755)
    shutil.copyfile(SUBMISSION, room / "cronnext.py")

    cases = [([e, start, str(len(times))], (times, 0)) for e, start, times in FIRING]
    cases += [([e, start, str(count)], (times, 3)) for e, start, count, times in SPARSE]
    cases += [([e, "2026-03-01 08:15", "1"], ([], 2)) for e in INVALID]
    failures = 0
    for arguments, expected in cases:
        actual = run(room, arguments)
        if actual != expected:
            failures += 1
            print(f"FAIL {arguments}: expected {expected}, got {actual}")
    print(f"{len(cases) - failures} of {len(cases)} cases pass")
    return 1 if failures else 0


sys.exit(main())
