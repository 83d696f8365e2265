"""Runs hidden programs on the submitted interpreter, in a container that the agent never entered.

The submission runs as an unprivileged user on its own copy, so it cannot read the cases here.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUBMISSION = Path("/app/stackvm.py")
NOBODY = 65534

CASES: list[tuple[str, str, list[str], int]] = [
    ("nothing", "", [], 0),
    ("comment only", "# 1 . nothing here", [], 0),
    ("order of subtraction", "5 3 - . 3 5 - .", ["2", "-2"], 0),
    ("negative literals", "-3 -4 * .", ["12"], 0),
    ("big numbers", "1 70 times big . : big 2 * ;", ["error: unknown word big"], 1),
    ("powers", ": big 2 * ; 1 70 times big .", [str(2**70)], 0),
    ("shuffling", "1 2 swap . . 1 2 over . . .", ["1", "2", "1", "2", "1"], 0),
    ("drop", "7 8 drop .", ["7"], 0),
    ("underflow keeps output", "1 . +", ["1", "error: stack underflow"], 1),
    ("underflow of over", "1 over", ["error: stack underflow"], 1),
    ("underflow of times", "times dup", ["error: stack underflow"], 1),
    ("unknown after output", "4 . frob 5 .", ["4", "error: unknown word frob"], 1),
    ("unknown but never reached", ": f frob ; 3 .", ["3"], 0),
    ("unknown zero times", "0 times frob -2 times frob 9 .", ["9"], 0),
    ("late definition", ": f g g ; : g 3 + ; 1 f .", ["7"], 0),
    ("redefinition", ": f 1 ; : g f . ; g : f 2 ; g", ["1", "2"], 0),
    ("builtin replaced", ": dup 42 ; 1 dup . .", ["42", "1"], 0),
    ("sum of squares", "# 3² + 4²\n: sq dup * ;\n3 sq 4 sq + . # 25", ["25"], 0),
    (
        "times inside a word",
        ": d 2 * ; : five 5 times d ; 1 five . 3 times five",
        ["32", "error: stack underflow"],
        1,
    ),
    ("times of a word with times", ": up 1 + ; : ten 10 times up ; 0 10 times ten .", ["100"], 0),
    ("times of an integer", "3 times 5 + + .", ["15"], 0),
    (
        "fibonacci",
        ": fib swap over + ; 0 1 90 times fib . .",
        ["4660046610375530309", "2880067194370816120"],
        0,
    ),
    ("many", ": up 1 + ; 0 200000 times up .", ["200000"], 0),
]


def main() -> int:
    if SUBMISSION.is_symlink() or not SUBMISSION.is_file():
        print(f"{SUBMISSION} was not handed on")
        return 1
    room = Path(tempfile.mkdtemp())
    room.chmod(0o755)
    shutil.copyfile(SUBMISSION, room / "stackvm.py")
    failures = 0
    for name, program, lines, code in CASES:
        (room / "program.stack").write_text(program)
        done = subprocess.run(
            [sys.executable, "-B", str(room / "stackvm.py"), str(room / "program.stack")],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=30,
            cwd=room,
            env={"PATH": os.environ["PATH"], "PYTHONUTF8": "1"},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
        passed = done.stdout.splitlines() == lines and done.returncode == code
        failures += not passed
        print(f"{name}: {'pass' if passed else 'FAIL'}")
        if not passed:
            print(f"  expected {lines} and exit {code}")
            print(f"  got {done.stdout.splitlines()[-5:]} and exit {done.returncode}")
    return 1 if failures else 0


sys.exit(main())
