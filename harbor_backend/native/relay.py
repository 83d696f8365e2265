"""The relay that gives the model an address in a sandbox, for an agent that Harbor drives."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harbor.environments.base import BaseEnvironment

from harbor_backend.errors import HarborBackendError, ModelRouteError
from osmosis_ai.rollout.container.files import GATEWAY_PORT, GATEWAY_SOCKET, RUNTIME_PYTHON

logger = logging.getLogger(__name__)

_RELAY = "osmosis_ai.rollout.container.relay"
_START_SEC = 60
_STOP_SEC = 10


@asynccontextmanager
async def relay(environment: BaseEnvironment) -> AsyncIterator[None]:
    """Let the sandbox's port ``GATEWAY_PORT`` lead to the gateway while the block runs.

    Raises:
        ModelRouteError: it does not start, for example because the environment
            does not mount the runtime, or the sandbox is lost.
    """
    command = f"{RUNTIME_PYTHON} -I -m {_RELAY} --socket {GATEWAY_SOCKET} --port {GATEWAY_PORT}"
    try:
        started = await environment.exec(command, cwd="/", user="root", timeout_sec=_START_SEC)
    except HarborBackendError:
        raise
    except Exception as exc:  # of the environment, which has its own
        raise ModelRouteError(
            f"The relay in the sandbox does not start within {_START_SEC}s: {exc}"
        ) from exc
    answer = (started.stdout or "").split()
    is_ready = answer[:1] == ["ready"] and len(answer) > 1 and answer[1].isdecimal()
    if started.return_code != 0 or not is_ready:
        raise ModelRouteError(
            "The agent's way to the model does not start: the relay in the sandbox ended with "
            f"exit code {started.return_code}: {(started.stderr or '').strip()[-500:]}. Run the "
            "task in HarborBackend's own Docker environment, or in Harbor's"
        )
    try:
        yield
    finally:
        await _end(environment, int(answer[1]))


async def _end(environment: BaseEnvironment, pid: int) -> None:
    try:
        await environment.exec(f"kill {pid}", cwd="/", user="root", timeout_sec=_STOP_SEC)
    except (RuntimeError, OSError) as exc:  # what ended the sandbox is reported by the agent's run
        logger.debug("The relay was not ended by itself: %s", exc)
