import argparse
import csv
import json
import re
import sqlite3
import sys

SCHEMA = """CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, day TEXT NOT NULL, account TEXT NOT NULL, cents INTEGER NOT NULL)"""
DIGITS = r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)\.[0-9]{2}"
AMOUNT = re.compile(rf"(-?)({DIGITS})|\(({DIGITS})\)")


def cents(text: str) -> int:
    match = AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"not an amount: {text!r}")
    sign, plain, bracketed = match.groups()
    digits = (plain or bracketed).replace(",", "").replace(".", "")
    return -int(digits) if sign or bracketed else int(digits)


def load(db: sqlite3.Connection, path: str) -> None:
    with open(path, encoding="utf-8", newline="") as source:
        for row in csv.DictReader(source):
            db.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                (int(row["id"]), row["day"], row["account"], cents(row["amount"])),
            )


def correct(db: sqlite3.Connection, path: str) -> None:
    with open(path, encoding="utf-8", newline="") as source:
        for row in csv.DictReader(source):
            entry = int(row["id"])
            if row["action"] == "void":
                changed = db.execute("DELETE FROM entries WHERE id = ?", (entry,))
            elif row["action"] == "amount":
                changed = db.execute(
                    "UPDATE entries SET cents = ? WHERE id = ?", (cents(row["amount"]), entry)
                )
            else:
                raise ValueError(f"not an action: {row['action']!r}")
            if changed.rowcount != 1:
                raise ValueError(f"no entry {entry}")


def balances(db: sqlite3.Connection) -> dict[str, str]:
    sums = db.execute("SELECT account, SUM(cents) FROM entries GROUP BY account")
    return {
        account: f"{'-' * (total < 0)}{abs(total) // 100}.{abs(total) % 100:02}"
        for account, total in sums
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("import", "correct", "balances"):
        command = commands.add_parser(name)
        if name != "balances":
            command.add_argument("file")
        command.add_argument("--db", required=True)
    options = parser.parse_args()
    db = sqlite3.connect(options.db)
    db.execute(SCHEMA)
    if options.command == "balances":
        print(json.dumps(balances(db)))
        return 0
    try:
        with db:
            (load if options.command == "import" else correct)(db, options.file)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
