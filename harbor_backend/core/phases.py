"""The two phases of the execution core, as they run in a sandbox."""

from dataclasses import dataclass

from osmosis_ai.rollout.container.files import (
    AGENT_LOGS_DIR,
    MAX_RESULT_BYTES,
    RUNTIME_DIR,
    RUNTIME_PYTHON,
    VERIFIER_LOGS_DIR,
)
from osmosis_ai.rollout.execution import GRADER_PHASE, WORKFLOW_PHASE

GRACE_SEC = 10.0
"""How long after its deadline a phase's process may take to end by itself."""

MAX_LOG_BYTES = 4 * 1024 * 1024
"""What is kept of each of a phase's output streams."""

RUNNER = (RUNTIME_PYTHON, "-I", "-m", "osmosis_ai.rollout.container.runner")

# The runtime's OpenSSL was built for the host's paths, which the image need not have.
RUNNER_ENV = {"SSL_CERT_FILE": f"{RUNTIME_DIR}/ca.pem"}


@dataclass(frozen=True)
class Phase:
    """A phase of the execution core and where it keeps its files in a sandbox."""

    name: str
    title: str
    logs_dir: str

    def arguments(self, source: str, target: str) -> list[str]:
        """The runner's arguments: where its input comes from and its result goes."""
        return [self.name, "--input", source, "--result", target]


@dataclass(frozen=True)
class PhaseCall:
    """A phase as it is to be run once.

    ``task`` is an encoded ``ContainerInput``. The process has ``limit_sec`` seconds, and of a
    result of more than ``max_result_bytes`` nothing is read.
    """

    phase: Phase
    task: bytes
    limit_sec: float | None
    max_result_bytes: int = MAX_RESULT_BYTES


AGENT = Phase("agent", WORKFLOW_PHASE, AGENT_LOGS_DIR)
GRADER = Phase("grader", GRADER_PHASE, VERIFIER_LOGS_DIR)
