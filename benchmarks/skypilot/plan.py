"""Which rollout is hit by which fault, and what its result has to say."""

from dataclasses import dataclass

_RUNNER = "container.runner"


@dataclass(frozen=True)
class Hit:
    """A fault, the command it hits, and the phase and category to be reported."""

    fault: str
    phase: str
    category: str | None
    command: str = ".*"
    times: int = 1
    seconds: float = 0.0
    note: str = ""


BUILD_SEC = 30.0
DEADLINE_SEC = 20.0
HITS = (
    Hit("create-refused", "environment_setup", "infrastructure_error"),
    Hit("create-lost", "environment_setup", "infrastructure_error"),
    Hit("create-slow", "environment_setup", "infrastructure_error", seconds=BUILD_SEC + 5),
    Hit("exec-lost", "environment_setup", "infrastructure_error", command="mkdir"),
    Hit("exec-lost", "agent", "infrastructure_error", command=f"{_RUNNER} agent"),
    Hit("exec-lost", "verifier", "infrastructure_error", command=f"{_RUNNER} grader"),
    Hit("exec-overrun", "agent", "timeout", command=f"{_RUNNER} agent"),
    Hit("terminate-fails", "verifier", None, times=10**6, note="was not terminated"),
)


def rollout_id(number: int) -> str:
    """The id of a rollout."""
    return f"fault-{number:05d}"


def hit_of(number: int) -> Hit | None:
    """Every tenth rollout is hit, by each fault in turn."""
    return HITS[number // 10 % len(HITS)] if number % 10 == 3 else None
