"""The engine of a host, through a socket of this machine that ssh forwards."""

from pathlib import Path

import httpx

from harbor_backend.places.docker.engine import Engine, EngineError


class TunnelledEngine(Engine):
    """An engine elsewhere: its containers see nothing of this machine's directories."""

    def __init__(self, socket: Path, host_name: str, docker_socket: str) -> None:
        super().__init__(f"unix://{socket}")
        self._host_name = host_name
        self._docker_socket = docker_socket

    @property
    def is_local(self) -> bool:
        """Never: paths of this machine mean nothing there."""
        return False

    def _unreachable(self, exc: httpx.HTTPError) -> EngineError:
        return EngineError(
            f"The Docker engine of host {self._host_name} does not answer at "
            f"{self._docker_socket} ({type(exc).__name__}: {exc}). Check that dockerd runs there, "
            "and that the ssh user may use it (`sudo usermod -aG docker $USER`)"
        )
