"""Runs the submitted report on logs that the agent never saw.

The submission runs as an unprivileged user on its own copy, so it cannot read the cases here.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUBMISSION = Path("/app/report.py")
NOBODY = 65534

TIES = """\
2026-05-02T23:59:59Z GET /b 200 10.0
2026-05-02T23:59:59Z GET /a?x=1 200 10
2026-05-03T00:00:00Z GET /a 200 9.99
2026-05-03T00:00:01Z PUT /b?y=2?z=3 301 3
2026-05-03T00:00:02Z GET /c 200 1
2026-05-03T00:00:03Z GET /d 200 1
"""

BROKEN = """\
   2026-05-02T01:00:00Z   GET  /spaced\t200   4.5
2026-05-02T01:00:00Z GET /short 200
2026-05-02T01:00:00Z GET /long 200 1.0 extra
2026-05-02T01:00:00Z GET /status 2000 1.0
2026-05-02T01:00:00Z GET /status abc 1.0
2026-05-02T01:00:00Z GET /negative 200 -1.0
2026-05-02T01:00:00Z GET /exponent 200 1e3
2026-05-02T01:00:00Z GET /nan 200 nan
2026-05-02T01:00:00Z GET /dot 200 1.

2026-05-02T01:59:59Z GET /x 500 2
2026-05-02T01:00:00Z GET /x 502 9
2026-05-02T02:00:00Z GET /x 599 8.999
"""

HUNDREDS = "".join(
    f"2026-06-{day:02}T{hour:02}:00:00Z GET /n/{(day * hour) % 7}?q={hour} "
    f"{(200, 204, 404, 500, 503)[(day + hour) % 5]} {day * 10 + hour}.5\n"
    for day in range(1, 20)
    for hour in range(0, 24, 2)
)


def hundreds_report() -> dict[str, object]:
    """Counts straight from the recipe of the log, without parsing it."""
    rows = [(day, hour) for day in range(1, 20) for hour in range(0, 24, 2)]
    status = {row: (2, 2, 4, 5, 5)[sum(row) % 5] for row in rows}
    counts: dict[str, int] = {}
    for day, hour in rows:
        path = f"/n/{(day * hour) % 7}"
        counts[path] = counts.get(path, 0) + 1
    ordered = sorted(counts, key=lambda path: (-counts[path], path))
    return {
        "requests": len(rows),
        "malformed": 0,
        "by_status": {f"{k}xx": sum(s == k for s in status.values()) for k in (2, 4, 5)},
        "slowest": f"/n/{(19 * 22) % 7}",
        "top_paths": [[path, counts[path]] for path in ordered[:3]],
        "server_errors_by_hour": {
            f"2026-06-{d:02}T{h:02}": 1 for d, h in rows if status[d, h] == 5
        },
    }


CASES: list[tuple[str, str, dict[str, object]]] = [
    (
        "empty",
        "\n   \n",
        {
            "requests": 0,
            "malformed": 0,
            "by_status": {},
            "slowest": None,
            "top_paths": [],
            "server_errors_by_hour": {},
        },
    ),
    (
        "ties",
        TIES,
        {
            "requests": 6,
            "malformed": 0,
            "by_status": {"2xx": 5, "3xx": 1},
            "slowest": "/b",
            "top_paths": [["/a", 2], ["/b", 2], ["/c", 1]],
            "server_errors_by_hour": {},
        },
    ),
    (
        "broken",
        BROKEN,
        {
            "requests": 4,
            "malformed": 8,
            "by_status": {"2xx": 1, "5xx": 3},
            "slowest": "/x",
            "top_paths": [["/x", 3], ["/spaced", 1]],
            "server_errors_by_hour": {"2026-05-02T01": 2, "2026-05-02T02": 1},
        },
    ),
    ("hundreds", HUNDREDS, hundreds_report()),
]


def main() -> int:
    if SUBMISSION.is_symlink() or not SUBMISSION.is_file():
        print(f"{SUBMISSION} is missing")
        return 1
    room = Path(tempfile.mkdtemp())
    room.chmod(0o755)
    program = room / "report.py"
    shutil.copyfile(SUBMISSION, program)
    failures = 0
    for name, log, expected in CASES:
        (room / "input.log").write_text(log)
        done = subprocess.run(
            [sys.executable, "-B", str(program), str(room / "input.log")],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=20,
            cwd=room,
            env={"PATH": os.environ["PATH"]},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
        try:
            actual = json.loads(done.stdout)
        except ValueError:
            actual = None
        passed = done.returncode == 0 and actual == expected
        failures += not passed
        print(f"{name}: {'pass' if passed else 'FAIL'}")
        if not passed:
            print(f"  expected {expected}\n  got {actual}\n  {done.stderr[-500:]}")
    return 1 if failures else 0


sys.exit(main())
