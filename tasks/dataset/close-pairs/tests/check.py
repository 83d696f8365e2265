"""Scores the submission on inputs that the agent never saw, against the program as it was.

Both run as an unprivileged user on their own copy, alternately, so that a busy machine slows both.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUBMISSION = Path("/app/pairs.py")
NOBODY = 65534
REQUIRED_SPEEDUP = 5.0
TIMEOUT = 30

Case = tuple[list[int], int]


def run(program: Path, case: Case) -> tuple[str, float]:
    """The last line that the program printed ("" for a failure) and the seconds it took."""
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-B", str(program)],
            input=json.dumps({"times": case[0], "window": case[1]}),
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            cwd=program.parent,
            env={"PATH": os.environ["PATH"]},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
    except subprocess.TimeoutExpired:
        return "", float(TIMEOUT)
    seconds = time.perf_counter() - started
    return (done.stdout.strip() if done.returncode == 0 else ""), seconds


def cases() -> tuple[list[Case], list[Case]]:
    """Small cases for the answers and large ones for answers and time."""
    source = random.Random(77)
    small: list[Case] = [
        ([], 0),
        ([5], 3),
        ([5, 5, 5], 0),
        ([1, 2, 4, 8, 16], 0),
        ([-10, 10, -10, 0], 10),
        ([3, 1, 2], 1000),
    ]
    small += [
        ([source.randrange(-50, 50) for _ in range(source.randrange(2, 40))], source.randrange(30))
        for _ in range(10)
    ]
    large = [([source.randrange(span) for _ in range(6000)], 40) for span in (1_000_000, 500)]
    return small, large


def main(scores_path: Path) -> None:
    if SUBMISSION.is_symlink() or not SUBMISSION.is_file():
        print(f"{SUBMISSION} is missing")
        return
    room = Path(tempfile.mkdtemp())
    room.chmod(0o755)
    before, after = room / "before.py", room / "after.py"
    shutil.copyfile("/tests/slow_pairs.py", before)
    shutil.copyfile(SUBMISSION, after)

    small, large = cases()
    right, slow_seconds, fast_seconds = 0, 0.0, 0.0
    for case in [*small, *large]:
        expected, slow = run(before, case)
        answer, fast = run(after, case)
        right += answer == expected
        if answer != expected:
            print(f"FAIL {len(case[0])} events, window {case[1]}: {expected!r}, got {answer!r}")
        if case in large:
            slow_seconds += slow
            fast_seconds += fast
    accuracy = right / (len(small) + len(large))
    speedup = slow_seconds / fast_seconds
    passed = accuracy == 1.0 and speedup >= REQUIRED_SPEEDUP
    scores = {"reward": float(passed), "accuracy": accuracy, "speedup": round(speedup, 2)}
    print(scores)
    scores_path.write_text(json.dumps(scores))


main(Path(sys.argv[1]))
