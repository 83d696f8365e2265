"""Tasks with tests of their own: what these gave, and how the agent ended before."""

from dataclasses import dataclass, replace
from typing import Any

from osmosis_ai.rollout import RolloutErrorCategory, RolloutSample, RolloutStatus
from tests.conformance.model import (
    AGENT,
    HISTORY,
    TIMEOUT,
    VALIDATION,
    Case,
    Phase,
    failed,
    matches,
    ok,
    sample,
)

_LATE = "Workflow exceeded its 1s deadline"
_EMPTY = sample([])
_ANY = matches(r".+")
_TEXT, _OBJECT = "/logs/verifier/reward.txt", "/logs/verifier/reward.json"


@dataclass(frozen=True)
class Verified:
    """A case on a task of one step, whose ``tests/test.sh`` runs ``script``."""

    case: Case
    script: str

    @property
    def id(self) -> str:
        """The case's."""
        return self.case.id


def _noted(of: RolloutSample | None, category: RolloutErrorCategory, message: str) -> Phase:
    """A success of an agent that failed so."""
    return Phase(RolloutStatus.SUCCESS, of, message, category)


def _worked(name: str, script: str, graded: Phase) -> Verified:
    return Verified(Case(f"verified-{name}", "returns:MessageList", ok(), graded=graded), script)


def _failed(
    name: str, workflow: str, category: RolloutErrorCategory, message: str, **request: Any
) -> Verified:
    """An agent that failed by itself, whose work is worth a half."""
    scored = _noted(_EMPTY.model_copy(update={"reward": 0.5}), category, message)
    case = Case(
        f"verified-{name}",
        workflow,
        _noted(None, category, message),
        graded=scored,
        request=request,
    )
    return Verified(case, f"echo 0.5 > {_TEXT}")


def _several(**rewards: float) -> RolloutSample:
    return sample(HISTORY, extra_fields={"rewards": rewards})


_DEADLINE = _failed("late", "timing:Sleeping", TIMEOUT, _LATE, agent_timeout_sec=1)

VERIFIED = [
    _worked("scored", f"echo 1 > {_TEXT}", ok(sample(reward=1.0))),
    _worked(
        "only-reward-of-another-name",
        f"echo '{{\"score\": 0.25}}' > {_OBJECT}",
        ok(_several(score=0.25).model_copy(update={"reward": 0.25})),
    ),
    _worked(
        "several-rewards-and-none",
        f'echo \'{{"a": 0.25, "b": 1}}\' > {_OBJECT}',
        failed(VALIDATION, _ANY, _several(a=0.25, b=1)),
    ),
    _worked("no-reward", "exit 0", failed(VALIDATION, _ANY, sample())),
    _worked("not-a-number", f"echo NaN > {_TEXT}", failed(VALIDATION, _ANY, sample())),
    _worked("a-directory", f"mkdir {_TEXT}", failed(VALIDATION, _ANY, sample())),
    _worked(
        "larger-than-a-float",
        f"echo '{{\"reward\": 1'$(printf '0%.0s' $(seq 400))'}}' > {_OBJECT}",
        failed(VALIDATION, _ANY, sample()),
    ),
    _worked(
        "deeper-than-json",
        f"python3 -c \"print('[' * 100000)\" > {_OBJECT}",
        failed(VALIDATION, _ANY, sample()),
    ),
    _DEADLINE,
    _failed("service-away", "faults:ModelAway", AGENT, "the model answered 503"),
    _failed("late-and-stuck", "timing:Blocking", TIMEOUT, _LATE, agent_timeout_sec=1),
    _failed("raised", "faults:RuntimeErrorRaised", AGENT, "the agent gave up\nin two lines"),
    _failed("exited", "faults:SysExit", AGENT, "Workflow called sys.exit(3)"),
    Verified(
        replace(
            _DEADLINE.case,
            id="verified-late-without-reward",
            graded=failed(TIMEOUT, matches(rf"{_LATE}\. What it left has no reward: .+"), _EMPTY),
        ),
        "exit 0",
    ),
    Verified(
        Case(
            "verified-tests-late",
            "returns:MessageList",
            ok(),
            graded=failed(TIMEOUT, _ANY, sample()),
            request={"grader_timeout_sec": 1},
        ),
        "sleep 60",
    ),
]
