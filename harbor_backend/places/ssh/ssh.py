"""One ssh process per host, shared by all that goes there."""

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from harbor_backend.places.ssh.errors import HostLostError, HostRefusedError
from harbor_backend.places.ssh.settings import FleetSettings, HostSettings
from harbor_backend.places.ssh.shell import RemoteShell

CONNECT_SEC = 60.0
_ALIVE_SEC, _ALIVE_COUNT = 5, 3
_END_SEC = 5.0
_FORWARD_SEC = 30.0
_MAX_ERRORS = 4096
_CONTROL = "ssh"
_DOCKER = "docker.sock"


class Connection:
    """A master connection; everything else is a channel of it.

    Its own session is a shell. The engine's socket there is ``docker_socket``
    here, and ``forward`` gives a socket of this machine a path there. When the
    network dies silently it ends after 15 seconds, and with it every channel.
    """

    def __init__(
        self,
        folder: Path,
        settings: FleetSettings,
        host: HostSettings,
        process: asyncio.subprocess.Process,
    ) -> None:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the ssh process needs pipes")
        self.docker_socket = folder / _DOCKER
        self.shell = RemoteShell(process.stdout, process.stdin)
        self._client = _client(folder, settings, host)
        self._host = host
        self._process = process

    async def ended(self) -> None:
        """Wait for the connection's end."""
        await self._process.wait()

    async def forward(self, there: str, here: Path) -> None:
        """Let connections to the unix socket ``there`` end at ``here``.

        Raises:
            HostRefusedError: the host does not forward unix sockets.
            HostLostError: the connection is gone.
        """
        await self._control("forward", there, here)

    async def cancel_forward(self, there: str, here: Path) -> None:
        """Undo ``forward``; connections that are open stay so."""
        await self._control("cancel", there, here)

    async def send(
        self, source: list[str], script: str, *arguments: str, benign_code: int = 0
    ) -> None:
        """Run a local command, and a script there that reads what it prints.

        A local command that ends with ``benign_code`` has printed all the same.

        Raises:
            HostRefusedError: one of them failed.
            HostLostError: the connection is gone.
        """
        remote = shlex.join(["sh", "-c", script, "sh", *arguments])
        with _pipe() as (read, write):
            sender = await asyncio.create_subprocess_exec(
                *source,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write,
                stderr=asyncio.subprocess.PIPE,
            )
            receiver = await asyncio.create_subprocess_exec(
                *self._client, "--", self._host.destination, remote,
                stdin=read, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        try:
            (_, sent), (_, received) = await asyncio.gather(
                sender.communicate(), receiver.communicate()
            )
        finally:
            await _kill(sender)
            await _kill(receiver)
        if receiver.returncode or sender.returncode not in {0, benign_code}:
            self._check()
            text = (received or sent).decode(errors="replace").strip()[-2000:]
            raise HostRefusedError(f"it cannot be copied to {self._host.destination}: {text}")

    async def _control(self, what: str, there: str, here: Path) -> None:
        command = [*self._client, "-O", what, "-R", f"{there}:{here}", "--", self._host.destination]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(_FORWARD_SEC):
                output, _ = await process.communicate()
        except TimeoutError as exc:
            raise HostLostError(f"ssh -O {what} did not end in {_FORWARD_SEC:.0f} seconds") from exc
        finally:
            await _kill(process)
        if process.returncode:
            self._check()
            raise HostRefusedError(
                f"{self._host.destination} does not forward the unix socket {there}: "
                f"{output.decode(errors='replace').strip()}. Its sshd must allow it "
                "(AllowStreamLocalForwarding yes)"
            )

    def _check(self) -> None:
        if self._process.returncode is not None:
            raise HostLostError("the ssh connection ended")


@asynccontextmanager
async def connect(
    folder: Path, settings: FleetSettings, host: HostSettings
) -> AsyncIterator[Connection]:
    """Open the connection to a host; its sockets are made in ``folder``.

    Raises:
        HostLostError: ssh cannot connect, or log in; the text holds what it said.
    """
    command = [
        *_base(folder, settings), "-T", "-a", "-x",
        *_options(
            ControlMaster="yes", ControlPersist="no", ForwardAgent="no", BatchMode="yes",
            ConnectTimeout="20", ServerAliveInterval=str(_ALIVE_SEC),
            ServerAliveCountMax=str(_ALIVE_COUNT), ExitOnForwardFailure="yes",
            StreamLocalBindUnlink="yes", EscapeChar="none", LogLevel="ERROR",
        ),
        "-L", f"{folder / _DOCKER}:{settings.docker_socket}",
        "--", host.destination, "exec sh",
    ]  # fmt: skip
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C at a terminal is for us: we end the sandboxes over this connection.
            start_new_session=True,
        )
    except FileNotFoundError as exc:
        raise HostLostError("there is no ssh on this machine: install the OpenSSH client") from exc
    said = _Said()
    listening = asyncio.create_task(said.listen(process.stderr), name="osmosis-ssh-errors")
    try:
        connection = Connection(folder, settings, host, process)
        try:
            await connection.shell.run("true", timeout_sec=CONNECT_SEC)
        except (HostLostError, HostRefusedError) as exc:
            await _kill(process)
            await asyncio.wait([listening], timeout=_END_SEC)
            raise HostLostError(f"ssh does not connect: {said.text or exc}") from exc
        yield connection
    finally:
        await _kill(process)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


class _Said:
    """The last of what ssh printed to standard error."""

    def __init__(self) -> None:
        self.text = ""

    async def listen(self, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (chunk := await stream.read(_MAX_ERRORS)):
            text = self.text + chunk.decode(errors="replace")
            self.text = text.strip()[-_MAX_ERRORS:]


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe between two processes; this one keeps no end of it."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _base(folder: Path, settings: FleetSettings) -> list[str]:
    config = [] if settings.ssh_config is None else ["-F", settings.ssh_config]
    return ["ssh", *config, "-S", str(folder / _CONTROL)]


def _client(folder: Path, settings: FleetSettings, host: HostSettings) -> list[str]:
    """How to ask the master for something; without one it fails and never connects by itself."""
    return [
        *_base(folder, settings),
        *_options(ControlMaster="no", ProxyCommand="false", BatchMode="yes", LogLevel="ERROR"),
    ]


def _options(**options: str) -> list[str]:
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_END_SEC):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
