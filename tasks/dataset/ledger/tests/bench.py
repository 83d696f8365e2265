"""What the checks of both steps share: a room in which the submission runs unprivileged."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
SUBMISSION = Path("/app/ledger.py")

Entry = tuple[int, str, str, int]


def entries(database: Path) -> list[Entry]:
    """All rows of the ledger, by id; empty when there is no such database or table."""
    if database.is_symlink() or not database.is_file():
        return []
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(
            "SELECT id, day, account, cents FROM entries ORDER BY id"
        ).fetchall()
    except sqlite3.DatabaseError as error:
        print(f"{database}: {error}")
        return []
    finally:
        connection.close()


@dataclass
class Room:
    path: Path
    failures: int = 0

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-B", str(self.path / "ledger.py"), *arguments],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=20,
            cwd=self.path,
            env={"PATH": os.environ["PATH"]},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )

    def write(self, name: str, text: str) -> str:
        path = self.path / name
        path.write_text(text)
        path.chmod(0o644)
        return str(path)

    def expect(self, what: str, actual: object, expected: object) -> None:
        passed = actual == expected
        self.failures += not passed
        print(f"{what}: {'pass' if passed else f'FAIL: expected {expected!r}, got {actual!r}'}")


def open_room() -> Room | None:
    """A fresh directory that only the unprivileged user owns, with a copy of the submission."""
    if SUBMISSION.is_symlink() or not SUBMISSION.is_file():
        print(f"{SUBMISSION} is missing")
        return None
    path = Path(tempfile.mkdtemp())
    os.chown(path, NOBODY, NOBODY)
    shutil.copyfile(SUBMISSION, path / "ledger.py")
    return Room(path)
