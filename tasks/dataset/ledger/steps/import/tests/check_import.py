"""The agent's own ledger, then files that it never saw."""

import sys

sys.path.insert(0, "/tests")

from pathlib import Path

from bench import entries, open_room

JANUARY = [
    (101, "2026-01-02", "cash", 125000),
    (102, "2026-01-02", "rent", -98050),
    (103, "2026-01-05", "cash", -1205),
    (104, "2026-01-09", "tools, small", 99),
    (105, "2026-01-20", "rent", -50),
    (106, "2026-01-31", "cash", 4000),
]
HEADER = "id,day,account,amount\n"
FIRST = HEADER + (
    '7,2026-02-01,cash,"(1,234,567.89)"\n'
    "3,2026-02-02,été,1.10\n"
    "4,2026-02-03,,-0.07\n"
    "5,2026-02-03,big,90071992547409.93\n"
)
FIRST_ENTRIES = [
    (3, "2026-02-02", "été", 110),
    (4, "2026-02-03", "", -7),
    (5, "2026-02-03", "big", 9007199254740993),
    (7, "2026-02-01", "cash", -123456789),
]
SECOND = HEADER + "7,2026-09-09,other,1.00\n8,2026-02-05,cash,0.29\n"
UNUSABLE = {
    "id": "9,2026-02-06,cash,1.00\nx,2026-02-06,cash,1.00\n",
    "one decimal": "9,2026-02-06,cash,1.00\n10,2026-02-06,cash,1.0\n",
    "currency": "9,2026-02-06,cash,1.00\n10,2026-02-06,cash,$1.00\n",
    "empty": "9,2026-02-06,cash,1.00\n10,2026-02-06,cash,\n",
}


def main() -> int:
    room = open_room()
    if room is None:
        return 1
    room.expect("/app/ledger.db", entries(Path("/app/ledger.db")), JANUARY)

    database = room.path / "new.db"
    first, second = room.write("first.csv", FIRST), room.write("second.csv", SECOND)
    for attempt in ("first import", "the same file again"):
        done = room.run("import", first, "--db", str(database))
        room.expect(f"{attempt}, exit code", done.returncode, 0)
        room.expect(attempt, entries(database), FIRST_ENTRIES)
    room.run("import", second, "--db", str(database))
    both = [*FIRST_ENTRIES, (8, "2026-02-05", "cash", 29)]
    room.expect("known ids are passed over", entries(database), both)
    for name, rows in UNUSABLE.items():
        done = room.run("import", room.write("bad.csv", HEADER + rows), "--db", str(database))
        room.expect(f"unusable {name}, exit code", done.returncode, 1)
        room.expect(f"unusable {name}", entries(database), both)
    return 1 if room.failures else 0


sys.exit(main())
