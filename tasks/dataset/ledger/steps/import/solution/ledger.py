import argparse
import csv
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


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    load_parser = commands.add_parser("import")
    load_parser.add_argument("file")
    load_parser.add_argument("--db", required=True)
    options = parser.parse_args()
    db = sqlite3.connect(options.db)
    db.execute(SCHEMA)
    try:
        with db:
            load(db, options.file)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
