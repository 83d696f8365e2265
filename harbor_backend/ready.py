"""Making a sandbox ready whose environment knows nothing of us, over Harbor's interface alone."""

import asyncio
import shlex
import time
import uuid
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult

from harbor_backend.environments.channel import SandboxLostError
from harbor_backend.phases import lost
from harbor_backend.skypilot.archives import ARCHIVE, KEY_FILE, runtime_archive
from harbor_backend.skypilot.images import USER_VARIABLE
from harbor_backend.skypilot.probing import probe_model
from harbor_backend.skypilot.remote import SETUP_SEC, TRANSFER_SEC, unpack_command
from harbor_backend.trials import TrialRecord
from osmosis_ai.rollout.container.files import RUNTIME_DIR


async def make_ready(environment: BaseEnvironment, record: TrialRecord, *, probe: bool) -> None:
    """Give a sandbox that is there the runtime, unless its image has it, and probe its model.

    An environment of ours has done both when it starts, and Harbor's Docker needs neither.

    Raises:
        ValueError: commands would not run as the user whom the image names.
        SandboxLostError: the sandbox, or the connection to it, failed.
        ModelUnreachableError: it does not reach the gateway.
    """
    record.is_creating = False
    if record.runtime_to_upload is None:
        return
    found = await _sh(environment, f'cat {RUNTIME_DIR}/{KEY_FILE}; echo; echo "${USER_VARIABLE}"')
    key, user = [*(found.stdout or "").split("\n"), "", ""][:2]
    if user:
        raise ValueError(
            f"The image's user is {user}, and Harbor's own environment runs commands as root: "
            "use environment_config=EnvironmentConfig(type='skypilot')"
        )
    if key != record.runtime_to_upload.name:
        began = time.monotonic()
        await _upload(environment, record.runtime_to_upload)
        record.took("runtime_upload", began)
    if probe and record.access is not None:
        await probe_model(_Runner(environment), record.access)


class _Runner:
    """Runs a program by Harbor's interface, which takes shell commands."""

    def __init__(self, environment: BaseEnvironment) -> None:
        self.name = environment.session_id
        self._environment = environment

    async def run(
        self, argv: list[str], *, budget: int, env: dict[str, str] | None = None
    ) -> ExecResult:
        return await _sh(self._environment, shlex.join(argv), budget, env)


async def _upload(environment: BaseEnvironment, runtime: Path) -> None:
    target = f"/tmp/osmosis-{uuid.uuid4().hex}.tar.gz"
    with await asyncio.to_thread(runtime_archive, runtime) as archive:
        try:
            await environment.upload_file(archive.path / ARCHIVE, target)
        except Exception as exc:  # of the SDK, whose exceptions are not documented
            raise lost(environment, exc) from exc
    done = await _sh(environment, unpack_command(target, RUNTIME_DIR), TRANSFER_SEC)
    if done.return_code != 0:
        raise SandboxLostError(
            f"The runtime was not unpacked in the sandbox of {environment.session_id}: "
            f"{(done.stderr or done.stdout or '').strip()[-500:]}"
        )


async def _sh(
    environment: BaseEnvironment,
    command: str,
    budget: int = SETUP_SEC,
    env: dict[str, str] | None = None,
) -> ExecResult:
    try:
        return await environment.exec(command, cwd="/", env=env, timeout_sec=budget, user="root")
    except Exception as exc:  # of the SDK, whose exceptions are not documented
        raise lost(environment, exc) from exc
