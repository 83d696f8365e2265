"""The agent's corrected ledger, then ledgers and corrections that it never saw."""

import json
import sys

sys.path.insert(0, "/tests")

from pathlib import Path

from bench import Room, entries, open_room

CORRECTED = [
    (101, "2026-01-02", "cash", 125000),
    (102, "2026-01-02", "rent", -98050),
    (103, "2026-01-05", "cash", -1250),
    (104, "2026-01-09", "tools, small", 99),
    (106, "2026-01-31", "cash", 104010),
]
ENTRIES = """\
id,day,account,amount
1,2026-05-01,a,0.10
2,2026-05-01,a,0.20
3,2026-05-01,b,-5.05
4,2026-05-01,c,1.00
5,2026-05-01,d,3.00
6,2026-05-01,d,-3.00
7,2026-05-01,a,"(1,000.05)"
"""
HEADER = "id,action,amount\n"
GOOD = HEADER + '4,void,\n3,amount,(0.07)\n2,amount,0.20\n7,amount,"12,000,000.00"\n'
REJECTED = {
    "unknown id": "1,void,\n99,void,\n",
    "an id voided before": "1,amount,5.00\n1,void,\n1,amount,1.00\n",
    "action": "1,void,\n2,double,\n",
    "amount": "1,void,\n2,amount,12\n",
}


def balances(room: Room, database: Path) -> object:
    done = room.run("balances", "--db", str(database))
    try:
        return json.loads(done.stdout)
    except ValueError:
        return done.stdout + done.stderr


def main() -> int:
    room = open_room()
    if room is None:
        return 1
    room.expect("/app/ledger.db", entries(Path("/app/ledger.db")), CORRECTED)

    database = room.path / "new.db"
    done = room.run("import", room.write("entries.csv", ENTRIES), "--db", str(database))
    room.expect("import still works", (done.returncode, len(entries(database))), (0, 7))
    before = {"a": "-999.75", "b": "-5.05", "c": "1.00", "d": "0.00"}
    room.expect("balances before", balances(room, database), before)

    untouched = entries(database)
    for name, rows in REJECTED.items():
        done = room.run("correct", room.write("bad.csv", HEADER + rows), "--db", str(database))
        room.expect(f"rejected {name}, exit code", done.returncode, 1)
        room.expect(f"rejected {name}", entries(database), untouched)

    done = room.run("correct", room.write("good.csv", GOOD), "--db", str(database))
    room.expect("corrections, exit code", done.returncode, 0)
    after = {"a": "12000000.30", "b": "-0.07", "d": "0.00"}
    room.expect("balances after", balances(room, database), after)
    return 1 if room.failures else 0


sys.exit(main())
