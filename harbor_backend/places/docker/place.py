"""Sandboxes that are containers of ours, on this machine's engine or on other hosts'."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.core.trial import Trial
from harbor_backend.places.docker.hosts import SANDBOX_HOSTS, SandboxHosts
from harbor_backend.places.docker.images import ensure_image
from harbor_backend.places.docker.local import LocalHosts
from harbor_backend.places.place import Environments, Place, TaskFiles, with_kwargs
from harbor_backend.places.sandbox import Role

ENVIRONMENT = "harbor_backend.places.docker.environment:DockerEnvironment"


class DockerPlace(Place):
    """A fresh container for each sandbox.

    ``config`` is what a caller wants for every sandbox; its ``kwargs`` go to
    ``DockerEnvironment``. ``hosts`` are the machines: this one by default.
    ``keep`` leaves the containers of finished trials in the engine.
    """

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        hosts: SandboxHosts | None = None,
        *,
        name: str = "osmosis-docker",
        keep: bool = False,
    ) -> None:
        given = config or EnvironmentConfig(import_path=ENVIRONMENT)
        update = {"import_path": ENVIRONMENT, "delete": given.delete and not keep}
        self._config = given.model_copy(update=update, deep=True)
        self._hosts = hosts or LocalHosts()
        self.name = name

    async def start(self) -> None:
        """See ``Place``."""
        await self._hosts.start()

    async def check_reachable(self, tasks: Sequence[TaskFiles]) -> None:
        """See ``Place``."""
        await self._hosts.engines()

    async def aclose(self) -> None:
        """See ``Place``."""
        await self._hosts.aclose()

    def report(self) -> dict[str, Any]:
        """See ``Place``: the state of each host, where there are several."""
        hosts = self._hosts.report()
        return {} if hosts is None else {"hosts": hosts}

    async def prepare_task(self, task: TaskFiles, runtime: Path | None) -> None:
        """See ``Place``: its image, on every host."""
        image = task.config.environment.docker_image
        for engine in await self._hosts.engines():
            await ensure_image(
                engine, task.environment_dir, image, force_build=self._config.force_build
            )

    async def environments(self, trial: Trial, stack: AsyncExitStack) -> Environments:
        """See ``Place``."""
        agent = self._for_trial(trial)
        # What a caller mounts is for its agent.
        grader = agent.model_copy(update={"mounts": None})
        return Environments(agent, with_kwargs(grader, role=Role.GRADER.value))

    def grader_environment(self, trial: Trial, fallback_image: str) -> EnvironmentConfig:
        """A grader's sandbox beside an agent's that is in another place.

        ``fallback_image`` is for tasks whose services have images of their own.
        """
        return with_kwargs(
            self._for_trial(trial), role=Role.GRADER.value, fallback_image=fallback_image
        )

    def _for_trial(self, trial: Trial) -> EnvironmentConfig:
        trial.lend(SANDBOX_HOSTS, self._hosts)
        return with_kwargs(
            self._config,
            runtime_dir=str(trial.spec.runtime),
            trial_key=trial.key,
            rollout_id=trial.spec.request.id,
        )
