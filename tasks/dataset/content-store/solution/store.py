import hashlib
import os
import sys
from pathlib import Path


def store(source: Path, target: Path) -> None:
    stored: list[str] = []
    unreadable: list[str] = []
    target.mkdir(parents=True, exist_ok=True)
    for folder, _, names in os.walk(source):
        for name in names:
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file():
                continue
            relative = path.relative_to(source).as_posix()
            try:
                content = path.read_bytes()
            except PermissionError:
                unreadable.append(relative)
                continue
            digest = hashlib.sha256(content).hexdigest()
            copy = target / "objects" / digest[:2] / digest[2:]
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
                copy.chmod(0o444)
            stored.append(f"{relative}\t{digest}")
    (target / "index.tsv").write_text("".join(f"{line}\n" for line in sorted(stored)))
    (target / "unreadable.txt").write_text("".join(f"{line}\n" for line in sorted(unreadable)))


store(Path(sys.argv[1]), Path(sys.argv[2]))
