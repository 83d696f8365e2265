"""One fresh container per sandbox, over the Engine API and a supervisor inside."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import (
    EnvironmentCapabilities,
    EnvironmentResourceCapabilities,
)
from harbor.environments.definition import require_agent_environment_definition
from harbor.models.trial.config import ResourceMode

from harbor_backend.core.phases import GRADER, MAX_LOG_BYTES, RUNNER, RUNNER_ENV, PhaseCall
from harbor_backend.core.spec import Model
from harbor_backend.core.trial import find_trial
from harbor_backend.errors import ModelRouteError, SandboxLostError, SandboxStartError
from harbor_backend.places.docker.container import Container, ContainerSpec
from harbor_backend.places.docker.download import download
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.engine_exec import EngineExec
from harbor_backend.places.docker.executor import Command, Executor
from harbor_backend.places.docker.health import wait_until_healthy
from harbor_backend.places.docker.hosts import SANDBOX_HOSTS, ChannelDir, SandboxHost
from harbor_backend.places.docker.image import Image
from harbor_backend.places.docker.images import ensure_image, forget_image
from harbor_backend.places.docker.local import LocalHosts
from harbor_backend.places.docker.mounts import bind, engine_mount
from harbor_backend.places.docker.networks import ensure_public_network
from harbor_backend.places.docker.supervisor import SupervisorStart, listening
from harbor_backend.places.docker.survey import ROOT, survey
from harbor_backend.places.docker.walls import walls_of
from harbor_backend.places.exchange import run_over_files
from harbor_backend.places.sandbox import ModelRoute, PhaseEnd, Sandbox, Sights, role_of
from osmosis_ai.rollout.container.files import CHANNEL_DIR, RUNTIME_DIR

if TYPE_CHECKING:
    from harbor_backend.places.docker.namespaces import Namespace


class DockerEnvironment(BaseEnvironment, Sandbox):
    """A Harbor environment for single-container tasks.

    One container from an image built once per content hash; commands and files
    go to the supervisor inside over a unix socket; removal by force. Nothing of
    the container is mounted from or to the trial's directories, so what it writes
    reaches the host only through size-limited downloads. The engine is this
    machine's, or that of a host which the trial's place lends.

    An image's own program, if it has one, is the first process, as its own user;
    the supervisor then runs beside it. An image's health check is waited for.

    ``runtime_dir`` is mounted read-only at ``/opt/osmosis``. Without it, or on an
    engine that cannot mount local directories, commands go through the Engine
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
        role: str | None = None,
        supervise: bool = True,
        fallback_image: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._runtime_dir = None if runtime_dir is None else Path(runtime_dir)
        self._trial = None if trial_key is None else find_trial(trial_key)
        self._rollout_id = rollout_id
        self._supervise = supervise
        self._fallback_image = fallback_image
        self._host: SandboxHost | None = None
        self._container: Container | None = None
        self._exec: Executor | None = None
        self._image_user: str | None = None
        self._shell: str | None = None
        self._channel_dir: ChannelDir | None = None
        self._namespace: Namespace | None = None
        self._stack = AsyncExitStack()
        self._has_graded = False
        self.role = role_of(role, self._trial)
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        """The name of this kind of environment."""
        return "osmosis-docker"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """That there is no network is enforced; allowlists are left to Harbor's environment."""
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """Limits on CPU and memory are enforced, reservations are not made."""
        limits = {"cpu_limit": True, "memory_limit": True, "fractional_cpus": True}
        return EnvironmentResourceCapabilities(**limits)

    @property
    def name(self) -> str:
        """The container's name; empty before there is one."""
        return "" if self._container is None else self._container.name

    @property
    def supervised(self) -> bool:
        """Whether a supervisor serves this sandbox (else the Engine API does)."""
        return self._exec is not None and self._exec.is_supervisor

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
            HarborBackendError: no host; engine or sandbox failed; the image is not healthy.
        """
        hosts = LocalHosts() if self._trial is None else self._trial.lent(SANDBOX_HOSTS)
        trial = self.session_id if self._trial is None else self._trial.key
        try:
            host = await self._stack.enter_async_context(hosts.lease(trial))
            self._host = host
            if self._trial is not None and host.note is not None:
                self._trial.results.note(host.note)
            async with self._telling_why():
                await self._start(host, force_build)
        except TimeoutError as exc:  # Harbor would take it for its own deadline
            raise SandboxStartError(
                f"A step of the sandbox's start ran out of time: {str(exc) or 'no more is known'}"
            ) from exc

    async def stop(self, delete: bool) -> None:
        """Remove the container by force, or leave it running under a name that is kept."""
        executor, self._exec = self._exec, None
        try:
            if self._container is not None:
                await self._container.end(executor, delete=delete)
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
            RuntimeError: it ran longer than ``timeout_sec``; its process tree was killed.
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

    async def run(self, command: Command) -> PhaseEnd:
        """Run a command as Harbor's scopes say about user, directory and environment."""
        user = self._resolve_user(command.user)
        command.user = self._image_user if user is None else user
        command.spares_processes = self._trial is not None and self._trial.spares_processes
        command.cwd = command.cwd or self.task_env_config.workdir
        command.env = self._merge_env(dict(command.env) if command.env else None)
        command.on_output = command.on_output or self._output_callback()  # type: ignore[assignment]
        async with self._telling_why():
            return await self._running.run(command)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file in; a target that is a directory gets it under its own name."""
        if target_path.endswith("/") or await self.is_dir(target_path, user="root"):
            target_path = f"{target_path.rstrip('/')}/{Path(source_path).name}"
        async with self._telling_why():
            await self._running.put(Path(source_path), target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy the content of a directory in."""
        source = Path(source_dir)
        if not source.is_dir():
            raise FileNotFoundError(f"Source directory {source} does not exist")
        async with self._telling_why():
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
        command = self._on_host.enter(self.name, await self._find_shell())
        os.execvp(command[0], command)

    async def make_ready(self) -> None:
        """See ``Sandbox``: it is ready when it has started."""

    async def open_directory(self, path: str) -> None:
        """See ``Sandbox``; to root, everything is open."""
        if self._image_user not in ROOT:
            await self.exec(f"mkdir -p {path} && chmod -R a+rwX {path}", user="root")

    async def before_tests(self, agent_sec: float, agent_user: str | int | None) -> Sights | None:
        """See ``Sandbox``."""
        users = (agent_user or self._image_user, self._resolve_user(None) or self._image_user)
        if (container := self._container) is None or not self.supervised:
            return None
        return await survey(self._running, container, agent_sec, *users)

    async def serve_model(self, model: Model, socket_path: str) -> ModelRoute:
        """See ``Sandbox``: a socket of the channel's directory, which is mounted.

        Raises:
            ModelRouteError: the engine cannot mount it.
        """
        if self._channel_dir is None:
            raise ModelRouteError(
                f"A model is called from inside {self.session_id}, and no socket can be mounted "
                f"there: its engine is not this machine's ({self._on_host.engine.host}). Point "
                "DOCKER_HOST at a unix socket, or use sky-docker for engines elsewhere"
            )
        socket = self._channel_dir.here / Path(socket_path).name
        if not socket.exists():
            try:
                await self._stack.enter_async_context(model.endpoint.listen_unix(socket))
            except (OSError, ValueError) as exc:
                raise ModelRouteError(f"The model's socket {socket} cannot be made: {exc}") from exc
            async with self._on_host.telling_host_from_sandbox():
                await self._channel_dir.offer(socket)
        return ModelRoute(socket=socket_path)

    async def run_phase(self, call: PhaseCall) -> PhaseEnd:
        """See ``Sandbox``.

        With a supervisor, the input goes to standard input and the result comes
        from a descriptor of its own. Neither is ever a file, so nothing that the
        agent starts can read the one or write the other.
        """
        if not self.supervised:
            return await run_over_files(self, call)
        arguments = call.phase.arguments("-", "fd:3")
        command = Command(
            [*RUNNER, *arguments],
            env=RUNNER_ENV,
            stdin=call.task,
            timeout_sec=call.limit_sec,
            output_limit=MAX_LOG_BYTES,
            result_limit=call.max_result_bytes,
            # What a grader was given went through the supervisor, of which a fork is a copy.
            runner=None if self._has_graded else arguments,
        )
        self._has_graded |= call.phase is GRADER
        return await self.run(command)

    async def _start(self, host: SandboxHost, force_build: bool) -> None:
        image = await self._image(host.engine, force_build=force_build)
        self._image_user = image.user or None
        mounts = [engine_mount(mount) for mount in self._host_mounts]
        network = "none" if self._network_disabled else await ensure_public_network(host.engine)
        supervisor: SupervisorStart | None = None
        env = self._startup_env()
        if self._runtime_dir is not None and host.can_mount:
            folder = self._channel_dir = await self._stack.enter_async_context(host.channel_dir())
            mounts += [
                bind(folder.there, CHANNEL_DIR, read_only=True),
                bind(await host.runtime(self._runtime_dir), RUNTIME_DIR, read_only=True),
            ]
            if self._supervise:
                supervisor = SupervisorStart(
                    await self._stack.enter_async_context(listening(folder)),
                    self._runtime_dir,
                    is_beside=not image.is_passive,
                    names_home=image.names_home or "HOME" in env,
                )
                self._namespace = await host.borrow_namespace(network, self._runtime_dir)
        if self._namespace is not None and self._channel_dir is not None:
            self._stack.callback(self._namespace.give_back)
            network = self._namespace.network_mode
            files = self._namespace.own_files(self._channel_dir.here)
            mounts += [bind(file, path, read_only=False) for path, file in files.items()]
        memory_mb = self._resource_limit_value("memory", auto_mode=ResourceMode.LIMIT)
        if self._resource_mode("memory") is ResourceMode.IGNORE:
            memory_mb = 0
        spec = ContainerSpec(
            image=image.reference,
            command=None if supervisor is None else supervisor.first_command,
            network=network,
            mounts=mounts,
            rollout_id=self._rollout_id,
            walls=await walls_of(host.engine),
            env=env,
            cpus=self._resource_limit_value("cpu", auto_mode=ResourceMode.LIMIT),
            memory_mb=memory_mb,
            labels=host.labels,
        )
        container = Container(host, self.session_id, self._namespace, self.logger)
        self._container = container
        try:
            await container.create(spec)
        except EngineError as exc:
            if exc.status != 404:
                raise
            forget_image(host.engine, image)  # somebody removed it since it was built
            again = await self._image(host.engine)
            await container.create(replace(spec, image=again.reference))
        await container.start()
        if supervisor is None:
            self._exec = EngineExec(host.engine, container.id, is_passive=image.is_passive)
        else:
            self._exec = await supervisor.connected(host.engine, container.id)
        if image.healthcheck is not None:
            await wait_until_healthy(host.engine, container.id, image.healthcheck)
        if targets := self._mount_targets(writable_only=True):
            await self._exec.mkdir([str(target) for target in targets])
        await self._upload_environment_dir_after_start()

    async def _image(self, engine: Engine, *, force_build: bool = False) -> Image:
        return await ensure_image(
            engine,
            self.environment_dir,
            self.task_env_config.docker_image,
            force_build=force_build,
        )

    async def _download(self, source: str, target: Path) -> None:
        async with self._telling_why():
            await download(self._running, source, target, self._note)

    def _note(self, text: str) -> None:
        self.logger.warning(text)
        if self._trial is not None:
            self._trial.results.note(text)

    @asynccontextmanager
    async def _telling_why(self) -> AsyncIterator[None]:
        """Say of a failure in the block whose it was, and of a lost sandbox what became of it."""
        async with self._on_host.telling_host_from_sandbox():
            try:
                yield
            except SandboxLostError as exc:
                loss = exc if self._container is None else await self._container.explained(exc)
                raise loss from exc.__cause__

    @property
    def _running(self) -> Executor:
        if self._exec is None:
            raise RuntimeError(f"The environment {self.session_id} is not running")
        return self._exec

    @property
    def _on_host(self) -> SandboxHost:
        if self._host is None:
            raise RuntimeError(f"The environment {self.session_id} is not running")
        return self._host

    async def _find_shell(self) -> str:
        if self._shell is None:
            async with self._telling_why():
                found = await self._running.run(Command(["sh", "-c", "command -v bash"]))
            self._shell = "bash" if found.code == 0 else "sh"
        return self._shell
