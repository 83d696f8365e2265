"""Compares the package with a minute-by-minute count on bookings that the agent never saw.

The submission runs as an unprivileged user on its own copy, so it cannot read the cases here.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUBMISSION = Path("/app/bookings")
NOBODY = 65534

Pairs = list[tuple[int, int]]


def runs(minutes: list[int]) -> list[list[int]]:
    """Group ascending minutes into [start, end) runs."""
    grouped: list[list[int]] = []
    for minute in minutes:
        if grouped and grouped[-1][1] == minute:
            grouped[-1][1] += 1
        else:
            grouped.append([minute, minute + 1])
    return grouped


def taken(bookings: Pairs) -> set[int]:
    return {minute for start, end in bookings for minute in range(start, end)}


def expected(name: str, arguments: list[object]) -> object:
    match name, arguments:
        case "merge", [bookings]:
            return runs(sorted(taken(bookings)))
        case "is_free", [start, end, bookings]:
            return not taken(bookings) & set(range(start, end))
        case "free_slots", [opens, closes, bookings, minimum]:
            free = [m for m in range(opens, closes) if m not in taken(bookings)]
            return [run for run in runs(free) if run[1] - run[0] >= minimum]
    raise AssertionError(name)


def cases() -> list[tuple[str, list[object]]]:
    listed: list[tuple[str, list[object]]] = [
        ("free_slots", [540, 1020, [], 1]),
        ("free_slots", [540, 1020, [(0, 1440)], 1]),
        ("free_slots", [540, 1020, [(500, 560), (1000, 1100)], 1]),
        ("free_slots", [540, 1020, [(100, 200), (1100, 1200)], 1]),
        ("free_slots", [540, 1020, [(570, 600), (630, 1020)], 30]),
        ("free_slots", [540, 1020, [(541, 600), (601, 1020)], 1]),
        ("is_free", [600, 660, [(540, 600)]]),
        ("is_free", [600, 660, [(660, 720)]]),
        ("is_free", [600, 660, [(610, 620), (540, 600)]]),
        ("merge", [[(10, 20), (20, 30), (5, 6)]]),
        ("merge", [[(10, 50), (20, 30), (25, 40)]]),
    ]
    source = random.Random(20260301)
    for _ in range(300):
        bookings = []
        for _ in range(source.randrange(7)):
            start = source.randrange(0, 70)
            bookings.append((start, start + source.randrange(1, 25)))
        opens = source.randrange(0, 40)
        closes = opens + source.randrange(1, 50)
        listed.append(("merge", [bookings]))
        listed.append(("is_free", [opens, closes, bookings]))
        listed.append(("free_slots", [opens, closes, bookings, source.randrange(1, 6)]))
    return listed


def main() -> int:
    if SUBMISSION.is_symlink() or not SUBMISSION.is_dir():
        print(f"{SUBMISSION} is missing")
        return 1
    room = Path(tempfile.mkdtemp())
    shutil.copytree(SUBMISSION, room / "bookings", symlinks=True)
    shutil.copyfile("/tests/call.py", room / "call.py")
    for path in (room, *room.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    todo = cases()
    done = subprocess.run(
        [sys.executable, "-B", "-I", str(room / "call.py"), str(room)],
        input=json.dumps(todo),
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
        timeout=60,
        cwd=room,
        env={"PATH": os.environ["PATH"]},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
    if done.returncode != 0:
        print(done.stderr[-2000:])
        return 1
    answers = json.loads(done.stdout.splitlines()[-1])
    if len(answers) != len(todo):
        print(f"expected {len(todo)} answers, got {len(answers)}")
        return 1
    failures = 0
    for (name, arguments), (result, arguments_after) in zip(todo, answers, strict=True):
        want = expected(name, arguments)
        changed = arguments_after != json.loads(json.dumps(arguments))
        if result != want or changed:
            failures += 1
            if failures <= 10:
                print(f"FAIL {name}{arguments}: expected {want}, got {result}, changed={changed}")
    print(f"{len(todo) - failures} of {len(todo)} cases pass")
    return 1 if failures else 0


sys.exit(main())
