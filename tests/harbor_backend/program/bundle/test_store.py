"""Entries are built once, held while in use, and pruned by age and size."""

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harbor_backend.program.bundle.store import Store

REPOSITORY = Path(__file__).parents[4]
DAY = 86_400


def fill(directory: Path) -> None:
    (directory / "file").write_bytes(b"x" * 1000)


def age(store: Store, key: str, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(store.root / f"{key}.used", (then, then))


def test_threads_share_one_build(tmp_path: Path) -> None:
    store = Store(tmp_path)
    builds: list[Path] = []

    def build(directory: Path) -> None:
        time.sleep(0.1)
        builds.append(directory)

    threads = [threading.Thread(target=store.acquire, args=("k", build)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1
    assert store.keys() == ["k"]


def test_a_build_that_fails_publishes_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fails(directory: Path) -> None:
        (directory / "half").write_text("")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.acquire("k", fails)
    assert store.keys() == []
    with store.acquire("k", fill) as entry:
        assert [p.name for p in entry.path.iterdir()] == ["file"]


def test_what_a_killed_builder_left_is_no_obstacle(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / ".building-k").mkdir()
    (tmp_path / ".building-k" / "half").write_text("")
    with store.acquire("k", fill) as entry:
        assert [p.name for p in entry.path.iterdir()] == ["file"]


def test_old_entries_go_and_each_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    for key in ("old", "kept", "young"):
        store.acquire(key, fill).close()
    age(store, "old", 31)
    age(store, "kept", 31)
    with caplog.at_level(logging.INFO):
        assert store.prune(max_age_days=30, keep={"kept"}) == ["old"]
    assert str(tmp_path / "old") in caplog.text
    assert sorted(store.keys()) == ["kept", "young"]


def test_the_oldest_go_until_the_rest_fits(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for days, key in enumerate(("newest", "middle", "oldest")):
        store.acquire(key, fill).close()
        age(store, key, days)
    assert store.prune(max_bytes=2500) == ["oldest"]
    assert store.prune(max_bytes=500) == ["middle", "newest"]


def test_hard_links_count_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    shared = tmp_path.parent / "shared-file"
    shared.write_bytes(b"x" * 10_000)
    for key in ("a", "b"):
        store.acquire(key, lambda d: os.link(shared, d / "file")).close()
    assert store.prune(max_bytes=10_000) == []


def test_what_a_living_process_holds_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    code = (
        "import sys; from pathlib import Path\n"
        "from harbor_backend.program.bundle.store import Store\n"
        f"entry = Store(Path({str(tmp_path)!r})).acquire('k', lambda d: None)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "held"
        age(store, "k", 99)
        assert store.prune() == []
        holder.kill()
    assert store.prune() == ["k"]


def test_a_handle_holds_until_it_is_closed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = store.acquire("k", fill), store.acquire("k", fill)
    first.close()
    assert store.prune(max_bytes=0) == []
    second.close()
    second.close()
    assert store.prune(max_bytes=0) == ["k"]
    with store.acquire("k", fill) as again:
        assert (again.path / "file").is_file()
