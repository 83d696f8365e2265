"""One fresh container per trial, over the Engine API and a supervisor inside."""

import asyncio
import os
import shutil
import uuid
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import (
    EnvironmentCapabilities,
    EnvironmentResourceCapabilities,
)
from harbor.environments.definition import require_agent_environment_definition
from harbor.models.trial.config import ResourceMode

from harbor_backend import labels
from harbor_backend.environments.channel import (
    MAX_DOWNLOAD_BYTES,
    MAX_DOWNLOAD_ENTRIES,
    Channel,
    Command,
    Listener,
    RunResult,
    SandboxLostError,
)
from harbor_backend.environments.channel_dir import make_channel_dir
from harbor_backend.environments.engine import Engine, EngineError, shared_engine
from harbor_backend.environments.engine_exec import EngineExec
from harbor_backend.environments.images import Image, ensure_image, forget_image
from harbor_backend.environments.mounts import bind, engine_mount
from harbor_backend.environments.namespaces import Namespace, borrow_namespace
from harbor_backend.environments.supervised import supervisor_command, why_not_started
from harbor_backend.instance import instance_id
from harbor_backend.trials import find_trial
from osmosis_ai.gateway import Endpoint
from osmosis_ai.rollout.container.files import (
    CHANNEL_DIR,
    GATEWAY_SOCKET,
    RUNTIME_DIR,
)

_START_TIMEOUT_SEC = 60
_LOOK_SEC = 1.0
_MAX_PIDS = 8192
_CONTROL = "control.sock"


class DockerEnvironment(BaseEnvironment):
    """A Harbor environment for single-container tasks.

    Per trial: one container from an image built once per content hash; commands
    and files go to the supervisor inside over a unix socket; removal by force.
    Nothing of the container is mounted from or to the trial's directories, so
    what it writes reaches the host only through size-limited downloads.

    ``runtime_dir`` is mounted read-only at ``/opt/osmosis``. Without it, on an
    engine that cannot mount local directories, or for an image whose entry
    point must run as another user than root, commands go through the Engine
    API instead. ``fallback_image`` serves directories without a Dockerfile.

    Isolation is a container's: a fresh filesystem, process tree and network
    namespace under the host's kernel. It does not protect against a kernel
    exploit, and disk usage is bounded by the engine's disk only.
    """

    def __init__(
        self,
        *args: Any,
        runtime_dir: str | None = None,
        trial_key: str | None = None,
        rollout_id: str = "",
        supervise: bool = True,
        fallback_image: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._runtime_dir = None if runtime_dir is None else Path(runtime_dir)
        self._trial_key = trial_key
        self._rollout_id = rollout_id
        self._supervise = supervise
        self._fallback_image = fallback_image
        self._engine: Engine | None = None
        self._container: str | None = None
        self._exec: Channel | EngineExec | None = None
        self._image_user: str | None = None
        self._shell: str | None = None
        self._channel_dir: Path | None = None
        self._namespace: Namespace | None = None
        self._stack = AsyncExitStack()
        self.name = ""
        self.has_graded = False
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        """The name of this kind of environment."""
        return "osmosis-docker"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """No network can be enforced; an allowlist is left to Harbor's own environment."""
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """Limits on CPU and memory are enforced, reservations are not made."""
        return EnvironmentResourceCapabilities(
            cpu_limit=True, memory_limit=True, fractional_cpus=True
        )

    @property
    def supervised(self) -> bool:
        """Whether a supervisor serves this sandbox (else the Engine API does)."""
        return isinstance(self._exec, Channel)

    @property
    def _network(self) -> str:
        return "none" if self._network_disabled else "default"

    @property
    def needs_no_permission(self) -> bool:
        """Whether commands run as root unless they say otherwise."""
        return self._image_user in {None, "root", "0"}

    def _validate_definition(self) -> None:
        if self._fallback_image is not None:  # a grader's sandbox needs one container only
            if not (self.environment_dir / "Dockerfile").exists():
                self.task_env_config.docker_image = (
                    self.task_env_config.docker_image or self._fallback_image
                )
            return
        if (self.environment_dir / "docker-compose.yaml").exists():
            raise ValueError(
                f"{self.environment_dir} holds a docker-compose.yaml, and {self.type()} runs one "
                "container only: leave environment_config unset, or set its type to 'docker'"
            )
        require_agent_environment_definition(
            self.environment_dir, docker_image=self.task_env_config.docker_image
        )

    async def start(self, force_build: bool) -> None:
        """Build or find the image, start the container and wait until it takes commands.

        Raises:
            SandboxBuildFailedError: the image does not build.
            EngineError: the engine does not answer, or refuses the container.
            SandboxLostError: the container ended at once.
        """
        self._engine = await self._reach_engine()
        image = await ensure_image(
            self._engine,
            self.environment_dir,
            self.task_env_config.docker_image,
            force_build=force_build,
        )
        self._image_user = image.user or None
        if self._runtime_dir is not None and self._mounts_runtime:
            self._channel_dir = make_channel_dir()
            self._stack.callback(shutil.rmtree, self._channel_dir, ignore_errors=True)
            await self._offer_runtime(self._runtime_dir)
        listener = await self._listen(image)
        if self._trial_key is not None and self.session_id.endswith("__env"):
            await self.serve_model(find_trial(self._trial_key).endpoint)
        if listener is not None and self._runtime_dir is not None and self._engine.is_local:
            self._namespace = await borrow_namespace(self._engine, self._network, self._runtime_dir)
            self._stack.callback(self._namespace.give_back)
        config = self._container_config(image, supervised=listener is not None)
        try:
            self._container = await self._create(self._engine, config)
        except EngineError as exc:
            if exc.status != 404:
                raise
            forget_image(self._engine, image)  # somebody removed it since it was built
            await ensure_image(
                self._engine, self.environment_dir, self.task_env_config.docker_image
            )
            self._container = await self._create(self._engine, config)
        await self._engine.start(self._container)
        if listener is not None:
            self._exec = await self._channel(self._engine, listener)
        else:
            self._exec = EngineExec(self._engine, self._container)
        if targets := self._mount_targets(writable_only=True):
            await self._exec.mkdir([str(target) for target in targets])
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        """Remove the container by force, or leave it running under a name that is kept."""
        executor, self._exec = self._exec, None
        container, self._container = self._container, None
        try:
            if container is not None and self._engine is not None:
                if delete:
                    await self._remove(self._engine, container)
                else:
                    await self._keep(self._engine, container, executor)
        finally:
            if executor is not None:
                await executor.close()
            await self._stack.aclose()

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a shell command; see ``BaseEnvironment.exec``.

        Raises:
            RuntimeError: it ran longer than ``timeout_sec`` seconds; its whole
                process tree was killed.
        """
        shell = await self._find_shell()
        done = await self.run(
            Command([shell, "-c", command], user=user, cwd=cwd, env=env, timeout_sec=timeout_sec)
        )
        if done.timed_out:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds")
        stderr = done.stderr.decode(errors="replace")
        if done.dropped:
            stderr += f"\n[{done.dropped} bytes of output over the limit were dropped]"
        return ExecResult(
            stdout=done.stdout.decode(errors="replace"), stderr=stderr, return_code=done.code
        )

    async def run(self, command: Command) -> RunResult:
        """Run a command as Harbor's scopes say about user, directory and environment."""
        user = self._resolve_user(command.user)
        command.user = self._image_user if user is None else user
        command.cwd = command.cwd or self.task_env_config.workdir
        command.env = self._merge_env(dict(command.env) if command.env else None)
        command.on_output = command.on_output or self._output_callback()  # type: ignore[assignment]
        return await self._running.run(command)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file in; a target that is a directory gets it under its own name."""
        if target_path.endswith("/") or await self.is_dir(target_path, user="root"):
            target_path = f"{target_path.rstrip('/')}/{Path(source_path).name}"
        await self._running.put(Path(source_path), target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy the content of a directory in."""
        source = Path(source_dir)
        if not source.is_dir():
            raise FileNotFoundError(f"Source directory {source} does not exist")
        await self._running.put(source, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file out, within the download budget and following no link."""
        await self._download(source_path, Path(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy the content of a directory out, within the download budget, as plain files."""
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await self._download(source_dir, Path(target_dir))

    async def attach(self) -> None:
        """Replace this process by a shell in the container."""
        os.execvp("docker", ["docker", "exec", "-it", self.name, await self._find_shell()])

    async def _download(self, source: str, target: Path) -> None:
        left_out = await self._running.get(
            source, target, max_bytes=MAX_DOWNLOAD_BYTES, max_entries=MAX_DOWNLOAD_ENTRIES
        )
        if left_out:
            text = f"{left_out} special files or unsafe links in {source} were left out"
            self.logger.warning(text)
            if self._trial_key is not None:
                find_trial(self._trial_key).note(text)

    @property
    def _running(self) -> Channel | EngineExec:
        if self._exec is None:
            raise RuntimeError(f"The environment {self.session_id} is not running")
        return self._exec

    async def _find_shell(self) -> str:
        if self._shell is None:
            found = await self._running.run(Command(["sh", "-c", "command -v bash"]))
            self._shell = "bash" if found.code == 0 else "sh"
        return self._shell

    async def serve_model(
        self, endpoint: Endpoint | None, socket_path: str = GATEWAY_SOCKET
    ) -> str | None:
        """Make an endpoint reachable in the sandbox until it stops.

        Returns the path of its socket there; ``None`` without an endpoint, or on
        an engine that cannot mount it.
        """
        if endpoint is None or self._channel_dir is None:
            return None
        socket = self._channel_dir / Path(socket_path).name
        await self._stack.enter_async_context(endpoint.listen_unix(socket))
        await self._offer_socket(socket)
        return socket_path

    async def _reach_engine(self) -> Engine:
        """The engine that runs the container."""
        return shared_engine()

    @property
    def _mounts_runtime(self) -> bool:
        """Whether runtime and sockets can be mounted there."""
        return self._engine is not None and self._engine.is_local

    async def _offer_runtime(self, runtime_dir: Path) -> None:
        """Make runtime and channel directory mountable; here they are already."""

    async def _offer_socket(self, socket: Path) -> None:
        """Make a socket of the channel directory reachable; here it is already."""

    def _runtime_mounts(self) -> list[dict[str, Any]]:
        return [
            bind(self._channel_dir, CHANNEL_DIR, read_only=True),
            bind(self._runtime_dir, RUNTIME_DIR, read_only=True),
        ]

    async def _listen(self, image: Image) -> Listener | None:
        """Open the socket of a supervised sandbox; ``None`` when it cannot be one."""
        entry_point_needs_user = bool(image.entrypoint) and image.user not in {"", "root", "0"}
        if not self._supervise or self._channel_dir is None or entry_point_needs_user:
            return None
        listener = Listener(self._channel_dir / _CONTROL)
        await listener.open()
        self._stack.push_async_callback(listener.close)
        await self._offer_socket(self._channel_dir / _CONTROL)
        return listener

    async def _channel(self, engine: Engine, listener: Listener) -> Channel:
        connecting = asyncio.ensure_future(listener.channel(_START_TIMEOUT_SEC))
        try:
            # A container that ends at once connects never: look, but not on the fast path.
            while not (await asyncio.wait({connecting}, timeout=_LOOK_SEC))[0]:
                if not (await engine.inspect(self._container or ""))["State"]["Running"]:
                    raise SandboxLostError("its container ended")
            return await connecting
        except (TimeoutError, SandboxLostError) as exc:
            raise SandboxLostError(await why_not_started(engine, self._container)) from exc
        finally:
            connecting.cancel()
            await listener.close()

    async def _create(self, engine: Engine, config: dict[str, Any]) -> str:
        """Create the container; a cancelled creation is waited for and undone."""
        self.name = labels.container_name(self.session_id, uuid.uuid4().hex[:8])
        if self._namespace is not None:
            self._namespace.occupied = True
        creation = asyncio.ensure_future(engine.create(self.name, config))
        try:
            return await asyncio.shield(creation)
        except asyncio.CancelledError:
            done = (await asyncio.gather(creation, return_exceptions=True))[0]
            if isinstance(done, str):
                await self._remove(engine, done)
            raise

    async def _remove(self, engine: Engine, container: str) -> None:
        gone = await engine.remove(container)
        if gone and self._namespace is not None:
            self._namespace.occupied = False

    def _container_config(self, image: Image, *, supervised: bool) -> dict[str, Any]:
        cpus = self._resource_limit_value("cpu", auto_mode=ResourceMode.LIMIT)
        memory_mb = self._resource_limit_value("memory", auto_mode=ResourceMode.LIMIT)
        mounts = [engine_mount(mount) for mount in self._host_mounts]
        if self._channel_dir is not None:
            mounts += self._runtime_mounts()
        network = self._network
        if self._namespace is not None and self._channel_dir is not None:
            network = self._namespace.network_mode
            files = self._namespace.own_files(self._channel_dir)
            mounts += [bind(file, path, read_only=False) for path, file in files.items()]
        return {
            "Image": image.reference,
            "Cmd": (
                supervisor_command(self._runtime_dir, f"{CHANNEL_DIR}/{_CONTROL}")
                if supervised
                else ["sh", "-c", "sleep infinity"]
            ),
            "User": "0:0" if supervised else "",
            "Healthcheck": {"Test": ["NONE"]},
            "Labels": {
                labels.SANDBOX: "docker",
                labels.INSTANCE: instance_id(),
                labels.ROLLOUT: self._rollout_id,
            },
            "HostConfig": {
                "NetworkMode": network,
                "Mounts": mounts,
                "NanoCpus": int(cpus * 1e9) if cpus else 0,
                "Memory": memory_mb * 1024 * 1024 if memory_mb else 0,
                "PidsLimit": _MAX_PIDS,
                "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}},
            },
        }

    async def _keep(
        self, engine: Engine, container: str, executor: Channel | EngineExec | None
    ) -> None:
        if isinstance(executor, Channel):
            await executor.keep()
        if self._namespace is not None:
            self._namespace.keep()
        kept = self.name.replace(labels.PREFIX, labels.KEPT_PREFIX, 1)
        await engine.call("POST", f"/containers/{container}/rename", params={"name": kept})
        self.name = kept
        self.logger.info("The sandbox was kept: docker exec -it %s sh", kept)
