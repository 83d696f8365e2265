"""The first act in a sandbox: whether it reaches its model."""

import asyncio
import json
from pathlib import Path
from typing import Protocol

from harbor.environments.base import ExecResult

from harbor_backend.errors import ModelUnreachableError
from osmosis_ai.rollout.container import probe
from osmosis_ai.rollout.container.files import RUNTIME_DIR, RUNTIME_PYTHON
from osmosis_ai.rollout.context import ModelEndpoint

_PROBE_SEC = 120
_REMEDIES = {
    "name": "Check the name in agent_base_url as the cluster resolves it",
    "connect": "Check that the gateway listens there (agent_bind), and what network policies and "
    "firewalls between the pods and it allow",
    "tls": "Check the certificate of agent_base_url, and that this machine's CA bundle, which the "
    "runtime carries, knows its issuer",
    "http": "Something between the sandbox and the gateway answers instead: check that the "
    "service, ingress or tunnel of agent_base_url forwards to this process",
    "gateway": "Check that agent_base_url leads to this process, not to another one",
}


class Runner(Protocol):
    """A sandbox, as far as a probe needs it."""

    name: str

    async def run(self, argv: list[str], *, budget: int, env: dict[str, str]) -> ExecResult:
        """Run a program for at most ``budget`` seconds."""
        ...


async def probe_model(sandbox: Runner, access: ModelEndpoint) -> None:
    """Pass when the sandbox reaches the gateway and its token opens the rollout's endpoint.

    Raises:
        ModelUnreachableError: it does not; the text names the hop that failed.
    """
    source = await asyncio.to_thread(Path(probe.__file__).read_text)
    done = await sandbox.run(
        [RUNTIME_PYTHON, "-I", "-S", "-c", source, access.url],
        budget=_PROBE_SEC,
        env={
            probe.TOKEN_VARIABLE: access.api_key or "",
            "SSL_CERT_FILE": f"{RUNTIME_DIR}/ca.pem",
        },
    )
    try:
        found = json.loads(done.stdout or "")
        hop, detail = found["hop"], found["detail"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelUnreachableError(
            f"The probe of {access.url} did not run in sandbox {sandbox.name} (exit code "
            f"{done.return_code}): {(done.stderr or '').strip()[-500:]}"
        ) from exc
    if hop is not None:
        raise ModelUnreachableError(
            f"Sandbox {sandbox.name} does not reach the model at {access.url}. It fails at the hop "
            f"'{hop}': {detail}. {_REMEDIES.get(hop, '')}"
        )
