"""Writes records in a thread, so that a slow disk stops no call."""

from collections import Counter, deque
from threading import Condition, Thread
from typing import Self

import anyio

from osmosis_ai.gateway.recordfile import RecordFile

_MAX_WAITING_BYTES = 64 * 1024 * 1024


class RecordWriter:
    """The one thread that appends to a gateway's record files, in the order of the calls.

    Use it as a context manager; leaving it writes what waits and ends the thread.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: deque[tuple[RecordFile, bytes]] = deque()
        self._bytes = 0
        self._lines: Counter[RecordFile] = Counter()
        self._closing = False
        self._thread = Thread(target=self._run, name="gateway-records", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def put(self, file: RecordFile, line: bytes) -> None:
        """Have a line written soon. A disk that is far behind makes the caller wait."""
        with self._changed:
            self._changed.wait_for(lambda: self._bytes <= _MAX_WAITING_BYTES)
            self._waiting.append((file, line))
            self._bytes += len(line)
            self._lines[file] += 1
            self._changed.notify_all()

    async def flush(self, file: RecordFile) -> None:
        """Return when all lines of a file are handed to the kernel."""
        with self._changed:
            if not self._lines[file]:
                return
        await anyio.to_thread.run_sync(self._wait, file, abandon_on_cancel=True)

    def _wait(self, file: RecordFile) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._lines[file])

    def _run(self) -> None:
        while lines := self._take():
            for file, line in lines:
                file.append(line)
            with self._changed:
                for file, line in lines:
                    self._bytes -= len(line)
                    self._lines[file] -= 1
                    if not self._lines[file]:
                        del self._lines[file]
                self._changed.notify_all()

    def _take(self) -> list[tuple[RecordFile, bytes]]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            lines = list(self._waiting)
            self._waiting.clear()
            return lines
