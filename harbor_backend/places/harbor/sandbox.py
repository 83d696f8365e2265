"""A sandbox whose environment knows nothing of us, over Harbor's interface alone."""

import asyncio
import shlex
import time
import uuid
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult

from harbor_backend.core.phases import PhaseCall
from harbor_backend.core.spec import Model
from harbor_backend.core.trial import Trial
from harbor_backend.errors import SandboxLostError
from harbor_backend.places.exchange import lost, run_over_files
from harbor_backend.places.probing import probe_model
from harbor_backend.places.runtime_archive import (
    ARCHIVE,
    KEY_FILE,
    USER_VARIABLE,
    runtime_archive,
    unpack_command,
)
from harbor_backend.places.sandbox import ModelRoute, PhaseEnd, Role, Sandbox, SandboxMaker
from osmosis_ai.rollout.container.files import RUNTIME_DIR

SETUP_SEC = 120
TRANSFER_SEC = 600


class HarborSandboxMaker(SandboxMaker):
    """Adapts the environments of one trial.

    ``upload`` is a runtime that is neither mounted nor brought by the
    environment; ``sockets`` are the models' that are mounted; ``max_exec_sec``
    is what the platform allows a command.
    """

    def __init__(
        self,
        upload: Path | None = None,
        sockets: frozenset[str] = frozenset(),
        max_exec_sec: int | None = None,
    ) -> None:
        self.upload = upload
        self.sockets = sockets
        self.max_exec_sec = max_exec_sec

    def adapt(self, environment: BaseEnvironment, trial: Trial, role: Role) -> Sandbox:
        """See ``SandboxMaker``."""
        return HarborSandbox(environment, trial, role, self)


class HarborSandbox(Sandbox):
    """One of Harbor's own environments as a trial's sandbox."""

    ends_before_grading = False

    def __init__(
        self, environment: BaseEnvironment, trial: Trial, role: Role, made_by: HarborSandboxMaker
    ) -> None:
        self.role = role
        self._environment = environment
        self._trial = trial
        self._upload = made_by.upload
        self._sockets = made_by.sockets
        self._max_exec_sec = made_by.max_exec_sec

    async def make_ready(self) -> None:
        """See ``Sandbox``: upload the runtime, unless the image has it, and probe the model.

        Raises:
            ValueError: commands would not run as the user whom the image names.
            SandboxLostError: the sandbox, or the connection to it, failed.
            ModelUnreachableError: it does not reach the gateway.
        """
        if self._upload is None:
            return
        found = await self._sh(f'cat {RUNTIME_DIR}/{KEY_FILE}; echo; echo "${USER_VARIABLE}"')
        key, user = [*(found.stdout or "").split("\n"), "", ""][:2]
        if user:
            raise ValueError(
                f"The image's user is {user}, and Harbor's own environment runs commands as root: "
                "use environment_config=EnvironmentConfig(type='skypilot')"
            )
        if key != self._upload.name:
            began = time.monotonic()
            await self._upload_runtime(self._upload)
            self._trial.results.took("runtime_upload", began)
        policy = self._trial.spec.policy
        if self.role is Role.AGENT and policy is not None and policy.remote is not None:
            await probe_model(_Runner(self), policy.remote)

    async def open_directory(self, path: str) -> None:
        """See ``Sandbox``."""
        await self._environment.exec(f"mkdir -p {path} && chmod -R a+rwX {path}", user="root")

    async def serve_model(self, model: Model, socket_path: str) -> ModelRoute:
        """See ``Sandbox``: a socket that is mounted, or a URL; a grader may have neither."""
        if model.remote is not None:
            return ModelRoute(url=model.remote.url, api_key=model.remote.api_key)
        if socket_path in self._sockets:
            return ModelRoute(socket=socket_path)
        self._trial.results.note(
            f"The {self.role}'s sandbox has no way to its model: Harbor's own environment was "
            "forced, and mounts only the agent's socket"
        )
        return ModelRoute()

    async def run_phase(self, call: PhaseCall) -> PhaseEnd:
        """See ``Sandbox``."""
        return await run_over_files(self._environment, call, max_exec_sec=self._max_exec_sec)

    async def _upload_runtime(self, runtime: Path) -> None:
        target = f"/tmp/osmosis-{uuid.uuid4().hex}.tar.gz"
        with await asyncio.to_thread(runtime_archive, runtime) as archive:
            try:
                await self._environment.upload_file(archive.path / ARCHIVE, target)
            except Exception as exc:  # of an SDK, whose exceptions are not documented
                raise lost(self._environment, exc) from exc
        done = await self._sh(unpack_command(target, RUNTIME_DIR), TRANSFER_SEC)
        if done.return_code != 0:
            raise SandboxLostError(
                f"The runtime was not unpacked in the sandbox of {self._environment.session_id}: "
                f"{(done.stderr or done.stdout or '').strip()[-500:]}"
            )

    async def _sh(
        self, command: str, budget: int = SETUP_SEC, env: dict[str, str] | None = None
    ) -> ExecResult:
        try:
            return await self._environment.exec(
                command, cwd="/", env=env, timeout_sec=budget, user="root"
            )
        except Exception as exc:  # of an SDK, whose exceptions are not documented
            raise lost(self._environment, exc) from exc


class _Runner:
    """Runs a program by Harbor's interface, which takes shell commands."""

    def __init__(self, sandbox: HarborSandbox) -> None:
        self.name = sandbox._environment.session_id
        self._sandbox = sandbox

    async def run(
        self, argv: list[str], *, budget: int, env: dict[str, str] | None = None
    ) -> ExecResult:
        return await self._sandbox._sh(shlex.join(argv), budget, env)
