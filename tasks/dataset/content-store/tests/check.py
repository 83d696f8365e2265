"""Checks the store that the agent made, then has its program store a tree that it never saw.

The verifier is root; the program runs as `worker`, like the agent, and cannot read the cases here.
"""

import hashlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path("/home/worker/store.py")
WORKER = pwd.getpwnam("worker")

README = b"Files from the old office.\n"
INCOMING = {
    "readme.txt": README,
    "2025/parts.csv": b"name,qty\nbolt,40\nnut,38\n",
    "2025/q4/empty.txt": b"",
    "2025/q4/copy.txt": README,
}
HIDDEN = {
    "a/b/c/deep.bin": bytes(range(256)) * 700,
    "a/twin": b"twin",
    "a.txt": b"before a slash in sorted order\n",
    "z/twin": b"twin",
    "with space.txt": b"spaces\n",
    ".hidden": b"dot\n",
}
HIDDEN_UNREADABLE = ["a/secret", "locked.txt"]


def problems(target: Path, files: dict[str, bytes], unreadable: list[str]) -> list[str]:
    """Everything in which `target` differs from the store of `files`."""
    found: list[str] = []
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    index = "".join(sorted(f"{path}\t{digest}\n" for path, digest in digests.items()))
    lists = {"index.tsv": index, "unreadable.txt": "".join(f"{p}\n" for p in sorted(unreadable))}
    for name, text in lists.items():
        path = target / name
        if path.is_symlink() or not path.is_file():
            found.append(f"{path} is missing")
        elif path.read_bytes() != text.encode():
            found.append(f"{path} holds {path.read_bytes()!r}, expected {text.encode()!r}")

    expected = {f"{d[:2]}/{d[2:]}": files[path] for path, d in digests.items()}
    objects = target / "objects"
    held = {p.relative_to(objects).as_posix() for p in objects.rglob("*") if not p.is_dir()}
    if held != expected.keys():
        found.append(f"{objects} holds {sorted(held)}, expected {sorted(expected)}")
        return found
    for name, content in expected.items():
        path = objects / name
        status = path.lstat()
        if path.is_symlink() or path.read_bytes() != content:
            found.append(f"{path} is not a copy of the file")
        elif status.st_mode & 0o7777 != 0o444 or status.st_uid != WORKER.pw_uid:
            found.append(f"{path} has mode {status.st_mode & 0o7777:o} and owner {status.st_uid}")
    return found


def run_hidden() -> list[str]:
    if PROGRAM.is_symlink() or not PROGRAM.is_file():
        return [f"{PROGRAM} is missing"]
    room = Path(tempfile.mkdtemp())
    os.chown(room, WORKER.pw_uid, WORKER.pw_gid)
    program = room / "store.py"
    shutil.copyfile(PROGRAM, program)
    source, target = room / "source", room / "made" / "target"
    for name, content in HIDDEN.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    for name in HIDDEN_UNREADABLE:
        (source / name).write_bytes(b"for root only\n")
        (source / name).chmod(0o600)
    (source / "nothing").mkdir()
    (source / "z" / "link").symlink_to("twin")
    (source / "folder-link").symlink_to("a")

    found: list[str] = []
    for attempt in ("first run", "second run"):
        done = subprocess.run(
            [sys.executable, "-B", str(program), str(source), str(target)],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=30,
            cwd=room,
            env={"PATH": os.environ["PATH"], "HOME": WORKER.pw_dir},
            user=WORKER.pw_uid,
            group=WORKER.pw_gid,
            extra_groups=[],
        )
        if done.returncode != 0:
            found.append(f"{attempt}: exit code {done.returncode}: {done.stderr[-500:]}")
        found += [f"{attempt}: {p}" for p in problems(target, HIDDEN, HIDDEN_UNREADABLE)]
    return found


def main() -> int:
    found = problems(Path("/data/store"), INCOMING, ["2025/payroll.csv"])
    found += run_hidden()
    for problem in found:
        print(f"FAIL {problem}")
    print(f"{len(found)} problems")
    return 1 if found else 0


sys.exit(main())
