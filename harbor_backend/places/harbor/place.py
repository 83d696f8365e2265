"""Sandboxes of Harbor's own environments, as they are."""

import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.core.spec import TrialSpec
from harbor_backend.core.trial import Trial
from harbor_backend.errors import SandboxStartError
from harbor_backend.places.channel_dir import make_channel_dir
from harbor_backend.places.docker.place import DockerPlace
from harbor_backend.places.harbor.compose import has_compose, has_compose_command
from harbor_backend.places.harbor.sandbox import HarborSandboxMaker
from harbor_backend.places.place import Environments, Place, TaskFiles, with_kwargs
from harbor_backend.places.sandbox import SANDBOX_MAKER
from osmosis_ai.rollout.container.files import CHANNEL_DIR, GATEWAY_SOCKET, RUNTIME_DIR
from sandbox_images import BASE_IMAGE

ENVIRONMENT = "harbor_backend.places.harbor.environment:ComposeEnvironment"


class HarborDockerPlace(Place):
    """Harbor's Docker environment, which drives ``docker compose``.

    The runtime and the directory of the model's socket are mounted. An SDK grader
    runs in one container of ours beside it; with ``forced``, Harbor's environment
    runs it too, unless the task has several services.
    """

    name = "docker"

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        *,
        forced: bool = False,
        keep: bool = False,
    ) -> None:
        given = config or EnvironmentConfig()
        update = {"type": None, "import_path": ENVIRONMENT}
        self._config = given.model_copy(update=update, deep=True)
        if keep:
            # Without its own argument, it removes containers in either case.
            self._config = with_kwargs(self._config, keep_containers=True)
            self._config.delete = False
        self._forced = forced
        self._graders = DockerPlace(EnvironmentConfig(delete=self._config.delete))

    async def start(self) -> None:
        """See ``Place``."""
        await self._graders.start()

    async def check_reachable(self, tasks: Sequence[TaskFiles]) -> None:
        """See ``Place``: the engine, and Compose."""
        await self._graders.check_reachable(tasks)
        if tasks and not await has_compose_command():
            raise SandboxStartError(
                f"Docker Compose v2 is not there, and {', '.join(task.name for task in tasks)} "
                "cannot run without it: install it (`make setup` does), or choose other tasks"
            )

    async def aclose(self) -> None:
        """See ``Place``."""
        await self._graders.aclose()

    async def environments(self, trial: Trial, stack: AsyncExitStack) -> Environments:
        """See ``Place``."""
        spec = trial.spec
        mounts: list[Any] = [*(self._config.mounts or []), _read_only(spec.runtime, RUNTIME_DIR)]
        sockets = frozenset[str]()
        grader_mounts = list(mounts)
        if spec.policy is not None:
            mounts.append(_read_only(await _channel_dir(spec, stack), CHANNEL_DIR))
            sockets = frozenset({GATEWAY_SOCKET})
        trial.lend(SANDBOX_MAKER, HarborSandboxMaker(sockets=sockets))
        config = self._config.model_copy(update={"mounts": mounts})
        agent = with_kwargs(config, trial_key=trial.key)
        # The agent's socket directory is not mounted where its work is graded.
        grader = agent.model_copy(update={"mounts": grader_mounts})
        if not self._forced or has_compose(spec.task.environment_dir):
            grader = self._graders.grader_environment(trial, BASE_IMAGE)
        return Environments(agent, grader)


class HarborPlace(Place):
    """Any other of Harbor's environments, or a caller's own: the runtime is uploaded."""

    reads_services_in_place = True

    def __init__(self, config: EnvironmentConfig, *, keep: bool = False) -> None:
        delete = config.delete and not keep
        self._config = config.model_copy(update={"delete": delete}, deep=True)
        kind = config.type
        self.name = str(config.import_path) if kind is None else kind.value

    def check(self, spec: TrialSpec) -> None:
        """See ``Place``: nothing inside has a way to a model."""
        if spec.policy is not None and spec.program.runs_inside:
            raise ValueError(
                f"environment_config={self.name!r} has no way to the gateway, and the agent runs "
                "inside: use Docker, SkyPilot or SkyDocker, an agent that calls its model from "
                "this process ('terminus-2'), or no chat_completions_url"
            )

    async def environments(self, trial: Trial, stack: AsyncExitStack) -> Environments:
        """See ``Place``."""
        upload = trial.spec.runtime if trial.spec.program.needs_runtime else None
        trial.lend(SANDBOX_MAKER, HarborSandboxMaker(upload))
        return Environments(self._config, self._config)


async def _channel_dir(spec: TrialSpec, stack: AsyncExitStack) -> Path:
    """A directory that can be mounted, with the socket of the agent's model in it."""
    directory = make_channel_dir()
    stack.callback(shutil.rmtree, directory, ignore_errors=True)
    if spec.policy is not None:
        socket = directory / Path(GATEWAY_SOCKET).name
        await stack.enter_async_context(spec.policy.endpoint.listen_unix(socket))
    return directory


def _read_only(source: Path, target: str) -> dict[str, Any]:
    return {"type": "bind", "source": str(source), "target": target, "read_only": True}
