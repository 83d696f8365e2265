"""One SkyPilot sandbox per trial: Harbor's environment, made safe to lose and to cancel."""

import asyncio
import io
import shlex
import time
from pathlib import Path
from typing import Any

from harbor.environments.base import ExecResult
from harbor.environments.definition import effective_exec_cwd
from harbor.environments.skypilot import SkypilotEnvironment as HarborSkypilotEnvironment
from harbor.environments.tar_transfer import pack_dir_to_bytes

from harbor_backend.core.phases import PhaseCall
from harbor_backend.core.spec import Model
from harbor_backend.core.trial import find_trial
from harbor_backend.errors import SandboxStartError
from harbor_backend.places.agent_logs import set_aside_unreadable
from harbor_backend.places.docker.engine import shared_engine
from harbor_backend.places.exchange import run_over_files
from harbor_backend.places.instance import instance_id
from harbor_backend.places.limits import MAX_DOWNLOAD_BYTES, MAX_DOWNLOAD_ENTRIES
from harbor_backend.places.probing import probe_model
from harbor_backend.places.runtime_archive import ARCHIVE, KEY_FILE, USER_VARIABLE, runtime_archive
from harbor_backend.places.sandbox import ModelRoute, PhaseEnd, Role, Sandbox, role_of
from harbor_backend.places.skypilot.creation import create_sandbox
from harbor_backend.places.skypilot.errors import SandboxCreationError
from harbor_backend.places.skypilot.images import ensure_registry_image
from harbor_backend.places.skypilot.lifetime import MAX_EXEC_SEC, check_budget, lifetime_sec
from harbor_backend.places.skypilot.names import sandbox_name
from harbor_backend.places.skypilot.preflight import require_skypilot
from harbor_backend.places.skypilot.remote import RemoteSandbox
from harbor_backend.places.skypilot.sdk import load_sdk
from harbor_backend.places.skypilot.settings import SkypilotSettings
from harbor_backend.places.skypilot.terminator import TERMINATOR, Terminator
from harbor_backend.places.tar import unpack
from osmosis_ai.rollout.container.files import (
    AGENT_LOGS_DIR,
    ARTIFACTS_DIR,
    RUNTIME_DIR,
    VERIFIER_LOGS_DIR,
)


class SkypilotEnvironment(HarborSkypilotEnvironment, Sandbox):
    """Harbor's SkyPilot environment for trials of a ``HarborBackend``.

    Beside what Harbor's does: the sandbox's life is as long as the rollout's
    deadlines allow and no longer; neither a cancellation nor a failure while it
    is created leaves it behind; its name tells process and rollout; it is ended
    with retries. The runtime is in the image, or uploaded once. Before anything
    else runs, the sandbox's way to the model is probed.

    What comes back is size-limited and written following no link. Isolation is
    a pod's: it does not protect against a kernel exploit unless the cluster
    runs pods under gVisor, and a pool decides its sandboxes' network.
    """

    def __init__(
        self,
        *args: Any,
        runtime_dir: str | None = None,
        trial_key: str | None = None,
        rollout_id: str = "",
        role: str | None = None,
        lifetime: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        # Harbor's own attributes for these differ between its versions.
        given = {name: kwargs[name] for name in SkypilotSettings.model_fields if name in kwargs}
        self._settings = SkypilotSettings.of(given)
        # Kept, not looked up again: a sandbox may have to be ended after its trial is forgotten.
        self._trial = None if trial_key is None else find_trial(trial_key)
        self.role = role_of(role, self._trial)
        self._lifetime = lifetime or lifetime_sec([None, None])
        # A separate verifier runs scripts, for which nothing of ours is needed.
        needs_runtime = runtime_dir is not None and self.role is not Role.VERIFIER
        self._runtime_dir = Path(runtime_dir) if needs_runtime and runtime_dir else None
        self._sandbox_name = sandbox_name(instance_id(), rollout_id or self.session_id)
        self._terminator = (
            Terminator(load_sdk()) if self._trial is None else self._trial.lent(TERMINATOR)
        )
        self._own_user = "root"
        self._image_user: str | None = None
        self._shell = "sh"

    @property
    def name(self) -> str:
        """The sandbox's name on the platform."""
        return self._sandbox_name

    @classmethod
    def preflight(cls, kwargs: dict[str, Any] | None = None) -> None:
        """See ``require_skypilot``; unlike Harbor's, it raises no ``SystemExit``."""
        require_skypilot()

    async def start(self, force_build: bool) -> None:
        """Create the sandbox, make it ready, and probe its way to the model.

        Raises:
            SandboxBuildFailedError: the task's image does not build, or cannot be pushed.
            SandboxCreationError: no sandbox came of it.
            SandboxLostError: it was lost at once.
            ModelUnreachableError: it does not reach the gateway.
        """
        try:
            await self._start(force_build)
        except TimeoutError as exc:  # Harbor would take it for its own deadline
            raise SandboxStartError(
                f"A step of the sandbox's start ran out of time: {str(exc) or 'no more is known'}"
            ) from exc

    async def _start(self, force_build: bool) -> None:
        image = await self._resolve_image(force_build)
        began = time.monotonic()
        self._sandbox = await create_sandbox(
            load_sdk(),
            self._terminator,
            self._sandbox_name,
            self._creation(image),
            self.task_env_config.build_timeout_sec,
        )
        self._timed("sandbox_create", began)
        has_runtime = await self._bootstrap()
        if self._runtime_dir is not None and not has_runtime:
            began = time.monotonic()
            await self._upload_runtime(self._runtime_dir)
            self._timed("runtime_upload", began)
        await self._probe_model()
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        """End the sandbox, whatever ``delete`` says: it is the platform's to keep, not ours."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is None:
            return
        began = time.monotonic()
        problem = await asyncio.shield(self._terminator.ending(self._sandbox_name, sandbox))
        self._timed("sandbox_terminate", began)
        if problem is not None:
            self._note(
                f"Sandbox {self._sandbox_name} was not terminated ({problem}); the reaper takes "
                f"it, and it ends by itself {self._lifetime}s after it began"
            )

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
            ValueError: ``timeout_sec`` is more than the platform allows.
            RuntimeError: it ran longer than ``timeout_sec`` seconds and was killed.
            SandboxLostError: the sandbox, or the connection to it, was lost.
        """
        check_budget(timeout_sec, "The budget of a command")
        whom = self._resolve_user(user)
        return await self._running.run(
            self._exec_argv(command, self._image_user if whom is None else whom),
            workdir=effective_exec_cwd(cwd, self.task_env_config.workdir, self._workdir),
            budget=timeout_sec or MAX_EXEC_SEC,
            env=self._merge_env(env),
        )

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file in."""
        data = await asyncio.to_thread(Path(source_path).read_bytes)
        await self._running.write(data, target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy the content of a directory in, as one archive."""
        source = Path(source_dir)
        if not source.is_dir():
            raise FileNotFoundError(f"Source directory {source} does not exist")
        packed = await asyncio.to_thread(pack_dir_to_bytes, source, compress=True)
        await self._running.write_archive(packed.getvalue(), target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file out, within the download budget."""
        data = await self._running.read(source_path)
        await asyncio.to_thread(_write_file, Path(target_path), data)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy the content of a directory out, within the download budget, as plain files."""
        try:
            data = await self._running.read_archive(source_dir)
            left_out = await asyncio.to_thread(_unpack, data, Path(target_dir))
        except ValueError as exc:
            self._note(f"{source_dir} was not fetched whole: {exc}")
            raise
        if left_out:
            self._note(f"{left_out} special files or unsafe links in {source_dir} were left out")
        if source_dir == AGENT_LOGS_DIR:
            for problem in await asyncio.to_thread(set_aside_unreadable, Path(target_dir)):
                self._note(problem)

    async def make_ready(self) -> None:
        """See ``Sandbox``: it is ready, and its model was probed, when it has started."""

    async def open_directory(self, path: str) -> None:
        """See ``Sandbox``; where commands run as root, everything is open to them."""
        if self._own_user != "root" or self._image_user is not None:
            await self.exec(f"mkdir -p {path} && chmod -R a+rwX {path}", user="root")

    async def serve_model(self, model: Model, socket_path: str) -> ModelRoute:
        """See ``Sandbox``: the gateway's URL, which the place saw to."""
        remote = model.remote
        return (
            ModelRoute() if remote is None else ModelRoute(url=remote.url, api_key=remote.api_key)
        )

    async def run_phase(self, call: PhaseCall) -> PhaseEnd:
        """See ``Sandbox``; the directories of phases were made when it started."""
        return await run_over_files(self, call, logs_are_ready=True, max_exec_sec=MAX_EXEC_SEC)

    @property
    def _running(self) -> RemoteSandbox:
        if self._sandbox is None:
            raise RuntimeError(f"The environment {self.session_id} is not running")
        return RemoteSandbox(self._sandbox_name, self._sandbox)

    async def _resolve_image(self, force_build: bool) -> str | None:
        image = self.task_env_config.docker_image
        if self._settings.pool or image:
            return None if self._settings.pool else image
        if self._settings.registry is None:
            raise SandboxCreationError(f"No registry to push the image of {self.environment_name}")
        began = time.monotonic()
        reference = await ensure_registry_image(
            shared_engine(),
            self._settings.registry,
            self.environment_name,
            self.environment_dir,
            self._runtime_dir,
            force_build=force_build,
        )
        self._timed("image", began)
        return reference

    def _creation(self, image: str | None) -> dict[str, Any]:
        """The arguments of a creation; a pool decides over image, shape and network."""
        memory_mb = self._effective_memory_mb
        arguments: dict[str, Any] = {
            "context_name": self._settings.context_name,
            "namespace": self._settings.namespace,
            "env": self._persistent_env or None,
            "secrets": self._settings.secrets,
            "timeout": self._lifetime,
        }
        if self._settings.pool:
            return {"pool": self._settings.pool, **arguments}
        return {
            "image": image,
            "cpus": self._effective_cpus,
            "memory_gb": None if memory_mb is None else memory_mb / 1024,
            "registry": self._settings.registry,
            "block_network": self._network_disabled,
            **arguments,
        }

    async def _bootstrap(self) -> bool:
        """Make directories, learn users and shell; returns whether the runtime is there."""
        wanted = [*self._mount_targets(writable_only=True), AGENT_LOGS_DIR, VERIFIER_LOGS_DIR]
        folders = shlex.join(dict.fromkeys([*wanted, ARTIFACTS_DIR]))
        # Of the task's Dockerfile, which neither a pool nor a prebuilt image was made from.
        home = effective_exec_cwd(None, self.task_env_config.workdir, self._workdir) or "/"
        done = await self._running.sh(
            f"mkdir -p {shlex.quote(home)} {folders} && chmod 777 {folders} && id -u && "
            f'{{ command -v bash || echo sh; }} && echo "${USER_VARIABLE}" && '
            f"cat {RUNTIME_DIR}/{KEY_FILE} 2>/dev/null; exit 0"
        )
        lines = (done.stdout or "").splitlines()
        if len(lines) < 3:
            raise SandboxCreationError(
                f"The sandbox {self._sandbox_name} cannot be prepared: its image must run as root "
                "and hold a shell, mkdir, chmod and id (an image that is built for the registry "
                f"does run as root). It said: {(done.stderr or '').strip()[-500:]}"
            )
        self._own_user = "root" if lines[0] == "0" else lines[0]
        self._shell, self._image_user = lines[1], lines[2] or None
        return self._runtime_dir is not None and lines[3:4] == [self._runtime_dir.name]

    async def _upload_runtime(self, runtime: Path) -> None:
        with await asyncio.to_thread(runtime_archive, runtime) as archive:
            data = await asyncio.to_thread((archive.path / ARCHIVE).read_bytes)
        await self._running.write_archive(data, RUNTIME_DIR)

    async def _probe_model(self) -> None:
        policy = None if self._trial is None else self._trial.spec.policy
        is_agents = self.role is Role.AGENT and self._runtime_dir is not None
        if is_agents and policy is not None and policy.remote is not None:
            await probe_model(self._running, policy.remote)

    def _exec_argv(self, command: str, user: str | int | None) -> list[str]:
        own = {self._own_user, "0" if self._own_user == "root" else self._own_user}
        if user is None or str(user) in own:
            return [self._shell, "-c", command]
        shell = f"{self._shell} -c {shlex.quote(command)}"
        if isinstance(user, int) or user.isdecimal():
            name = f'"$(getent passwd {user} | cut -d: -f1)"'
            return ["sh", "-c", f"su -s /bin/sh {name} -c {shlex.quote(shell)}"]
        return ["su", "-s", "/bin/sh", user, "-c", shell]

    def _note(self, text: str) -> None:
        self.logger.warning(text)
        if self._trial is not None:
            self._trial.results.note(text)

    def _timed(self, what: str, began: float) -> None:
        """Add to a trial's timings; those of its sandboxes are summed."""
        if self._trial is not None:
            self._trial.results.took(what, began)


def _write_file(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def _unpack(data: bytes, target: Path) -> int:
    target.mkdir(parents=True, exist_ok=True)
    return unpack(io.BytesIO(data), target, MAX_DOWNLOAD_BYTES, MAX_DOWNLOAD_ENTRIES)
