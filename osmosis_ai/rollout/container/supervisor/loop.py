"""The supervisor's loop: one thread, one connection, many channels."""

import contextlib
import errno
import json
import os
import select
import signal
import socket
import time
from typing import Any

from .frames import (
    CANCEL,
    CHUNK,
    DATA,
    DONE,
    ENTRY,
    HEADER,
    INPUT,
    INPUT_END,
    OPEN,
    READY,
    RESULT,
    STDERR,
    STDOUT,
    TIMED_OUT,
    pack,
)
from .jobs import Job, exit_code
from .surroundings import Surroundings
from .transfer import Batch, Download, Upload
from .tree import end_tree

_DRAIN_SEC = 0.2


class Supervisor:
    """Serves the host until the host closes the connection.

    ``given`` is what every command gets; ``is_alone``: no process is seen from here but
    those of one sandbox.
    """

    def __init__(self, connection: socket.socket, given: Surroundings, *, is_alone: bool) -> None:
        self._connection = connection
        self._given = given
        self._is_alone = is_alone
        self._kept = False
        self._inbox = bytearray()
        self._jobs: dict[int, Job] = {}
        self._uploads: dict[int, Upload] = {}
        self._owners: dict[int, Job] = {}
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._wake, wake_write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write)
        self._poll.register(self._wake, select.POLLIN)

    def serve(self) -> None:
        """Serve until the host is gone; a sandbox that is kept lives on."""
        with contextlib.suppress(ConnectionError):
            self._serve_host()
        while self._kept:  # for somebody who wants to look around in the sandbox
            signal.pause()
            self._reap()

    def _serve_host(self) -> None:
        """Announce readiness, then serve frames, pipes and child exits."""
        self._send(0, READY, json.dumps({"cwd": self._given.cwd}).encode())
        connected = True
        while connected:
            for fd, _ in self._poll.poll(self._timeout_ms()):
                if fd == self._connection.fileno():
                    connected = self._receive()
                elif fd == self._wake:
                    os.read(self._wake, 4096)
                elif fd in self._owners:
                    self._transfer(fd)
            self._reap()
            self._expire()

    def _timeout_ms(self) -> int | None:
        moments = [
            moment
            for job in self._jobs.values()
            for moment in (None if job.timed_out else job.deadline, job.drain_until)
            if moment is not None
        ]
        return max(0, int((min(moments) - time.monotonic()) * 1000) + 1) if moments else None

    def _send(self, channel: int, kind: int, payload: bytes = b"") -> None:
        self._connection.sendall(pack(channel, kind, payload))

    def _done(self, channel: int, **answer: Any) -> None:
        self._send(channel, DONE, json.dumps(answer).encode())

    def _receive(self) -> bool:
        data = self._connection.recv(4 * CHUNK)
        self._inbox += data
        while len(self._inbox) >= HEADER.size:
            channel, kind, length = HEADER.unpack_from(self._inbox)
            end = HEADER.size + length
            if len(self._inbox) < end:
                break
            payload = bytes(self._inbox[HEADER.size : end])
            del self._inbox[:end]
            try:
                self._handle(channel, kind, payload)
            except OSError as exc:
                self._refuse(channel, os.strerror(exc.errno or 0), exc.errno, exc.filename)
            except (KeyError, ValueError) as exc:
                self._refuse(channel, str(exc), errno.EINVAL, None)
        return bool(data)

    def _refuse(self, channel: int, error: str, number: int | None, path: object) -> None:
        self._uploads.pop(channel, None)
        self._done(channel, error=error, errno=number, path=str(path or ""))

    def _handle(self, channel: int, kind: int, payload: bytes) -> None:
        if kind == OPEN:
            self._open(channel, json.loads(payload))
        elif job := self._jobs.get(channel):
            if kind == INPUT:
                job.pending += payload
            elif kind == INPUT_END:
                job.input_ended = True
            elif kind == CANCEL and not job.spare_tree():
                end_tree(job.guard, is_alone=self._is_alone)
            self._feed(job)
        elif upload := self._uploads.get(channel):
            if kind == ENTRY:
                upload.entry(json.loads(payload))
            elif kind == DATA:
                upload.data(payload)
            elif kind == INPUT_END:
                upload.close()
                del self._uploads[channel]
                self._done(channel)

    def _open(self, channel: int, request: dict[str, Any]) -> None:
        match request["op"]:
            case "exec":
                job = Job(channel, request, self._given)
                self._jobs[channel] = job
                for fd in job.pipes:
                    self._owners[fd] = job
                    self._poll.register(fd, select.POLLIN)
            case "mkdir":
                for path in request["paths"]:
                    os.makedirs(path, exist_ok=True)
                    os.chmod(path, request["mode"])
                self._done(channel)
            case "put":
                self._uploads[channel] = Upload(request["path"])
            case "get":
                batch = Batch(lambda kind, payload: self._send(channel, kind, payload))
                download = Download(batch.add, request["max_bytes"], request["max_entries"])
                try:
                    download.tree(request["path"])
                finally:
                    batch.flush()
                self._done(channel, skipped=download.skipped)
            case "keep":
                self._kept = True
                self._done(channel)
            case unknown:
                raise ValueError(f"unknown operation {unknown}")

    def _feed(self, job: Job) -> None:
        stdin = job.stdin
        if stdin is None:
            return
        full = job.feed()
        if full and stdin not in self._owners:
            self._owners[stdin] = job
            self._poll.register(stdin, select.POLLOUT)
        elif not full and self._owners.pop(stdin, None) is not None:
            self._poll.unregister(stdin)
        if not full and job.input_ended:
            self._forget(stdin)
            job.stdin = None

    def _transfer(self, fd: int) -> None:
        job = self._owners[fd]
        if fd == job.stdin:
            self._feed(job)
            return
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._forget(fd)
            del job.pipes[fd]
            self._finish(job)
            return
        kind = job.pipes[fd]
        if passed := job.take(kind, data):
            self._send(job.channel, kind, passed)

    def _forget(self, fd: int) -> None:
        if self._owners.pop(fd, None) is not None:
            self._poll.unregister(fd)
        os.close(fd)

    def _reap(self) -> None:
        guards = {job.guard: job for job in self._jobs.values()}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if (job := guards.get(pid)) is not None:
                job.code = TIMED_OUT if job.timed_out else exit_code(status)
                # A background process may hold the pipes open for as long as it lives.
                job.drain_until = time.monotonic() + _DRAIN_SEC
                self._finish(job)

    def _expire(self) -> None:
        now = time.monotonic()
        for job in list(self._jobs.values()):
            if job.deadline is not None and now >= job.deadline and not job.timed_out:
                job.timed_out = True
                if not job.spare_tree():
                    end_tree(job.guard, is_alone=self._is_alone)
            elif job.drain_until is not None and now >= job.drain_until:
                for fd in list(job.pipes):  # while a frame was being sent, nothing was read
                    self._transfer(fd)
                if job.channel in self._jobs:
                    self._finish(job, force=True)

    def _finish(self, job: Job, force: bool = False) -> None:
        if job.code is None or (job.pipes and not force):
            return
        for fd in [*job.pipes, *([job.stdin] if job.stdin is not None else [])]:
            self._forget(fd)
        del self._jobs[job.channel]
        self._done(
            job.channel,
            code=job.code,
            timed_out=job.timed_out,
            dropped=job.dropped[STDOUT] + job.dropped[STDERR],
            result_dropped=job.dropped[RESULT],
        )
