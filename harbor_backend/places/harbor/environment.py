"""Harbor's Docker environment, which drives ``docker compose``, for our trials."""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harbor.constants import MAIN_SERVICE_NAME
from harbor.environments.docker import COMPOSE_BUILD_PATH
from harbor.environments.docker.docker import DockerEnvironment

from harbor_backend.core.trial import find_trial
from harbor_backend.errors import HarborBackendError, SandboxStartError
from harbor_backend.outages import is_network_failure
from harbor_backend.places.harbor.compose import (
    has_compose_command,
    has_own_network,
    make_overlay,
    read_services,
)
from osmosis_ai.rollout.types.status import RolloutErrorCategory

_READ_SEC = 120
_MAX_TEXT = 2000


class ComposeFileError(HarborBackendError, ValueError):
    """The compose file of a task cannot be used; the text is what Compose says of it."""

    category = RolloutErrorCategory.VALIDATION_ERROR


class ComposeEnvironment(DockerEnvironment):
    """Harbor's own environment, made of where a task lies and not of its copy.

    A compose file names places beside it, also outside of its folder, and each
    relative path has to mean what its author meant: the mounts and contexts of
    services, their ``env_file``, what is included or extended. Compose itself says
    which services there are; all are labelled as ours, a separate verifier's too.
    """

    def __init__(self, *, trial_key: str, environment_dir: Path, **kwargs: Any) -> None:
        self._trial = find_trial(trial_key)
        self._services: Mapping[str, Any] = {MAIN_SERVICE_NAME: {}}
        self._overlay: Path | None = None
        place = self._trial.spec.task.original(environment_dir)
        super().__init__(environment_dir=place, **kwargs)

    async def start(self, force_build: bool) -> None:
        """Read the services, mark them, and start them as Harbor does.

        Raises:
            ComposeFileError: there is something wrong with the task's compose file.
            SandboxStartError: Compose is not there, or what it needs cannot be fetched.
        """
        if self._user_compose_paths():
            self._services = await self._read_services()
        services = dict(self._services)
        if self._enable_egress_control:
            services[self._EGRESS_CONTROL_SERVICE_NAME] = {}
        task = self._trial.spec.task
        overlay = make_overlay(services, task, self._trial.spec.request.id)
        path = task.path.parent / f"{self.session_id}.overlay.json"
        await asyncio.to_thread(path.write_text, overlay)
        self._overlay = path
        await super().start(force_build)

    @property
    def _docker_compose_paths(self) -> list[Path]:
        """See Harbor's; while the services are read, only what decides them."""
        if self._overlay is None:
            return [COMPOSE_BUILD_PATH, *self._user_compose_paths()]
        return [*super()._docker_compose_paths, self._overlay]

    def _egress_controlled_service_names(self) -> list[str]:
        """See Harbor's, which reads no tags in a compose file, and not what it includes."""
        return [name for name, service in self._services.items() if not has_own_network(service)]

    async def _read_services(self) -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory(prefix="osmosis-compose-") as folder:
            document = Path(folder, "config.json")
            command = ["config", "--format", "json", "--output", str(document)]
            try:
                done = await self._run_docker_compose_command(
                    command, check=False, timeout_sec=_READ_SEC
                )
            except FileNotFoundError as exc:
                raise SandboxStartError(f"There is no docker command here: {exc}") from exc
            except RuntimeError as exc:  # Harbor's, when the time is over
                raise SandboxStartError(
                    f"{self._called} was not read in {_READ_SEC} s: what it includes does not come"
                ) from exc
            if done.return_code != 0:
                raise await self._refusal(done.stdout or done.stderr or "no reason was given")
            try:
                return await asyncio.to_thread(read_services, document)
            except ValueError as exc:
                raise ComposeFileError(f"{self._called}: {exc}") from exc

    async def _refusal(self, said: str) -> HarborBackendError:
        said = said.strip()[-_MAX_TEXT:]
        if not await has_compose_command():
            return SandboxStartError(f"Docker Compose v2 is not there: install it. {said}")
        if is_network_failure(said):
            return SandboxStartError(f"{self._called} needs what cannot be fetched: {said}")
        return ComposeFileError(f"{self._called} cannot be used: {said}")

    @property
    def _called(self) -> str:
        files = ", ".join(map(str, self._user_compose_paths()))
        return f"The compose file of task {self._trial.spec.task.name} ({files})"
