"""Which of the rewards that a task's tests wrote is the sample's."""

import math
from collections.abc import Mapping

from osmosis_ai.rollout.execution import refusal
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutStatus

REWARD = "reward"
NO_REWARD = (
    "The task's verifier wrote no reward: tests/test.sh must write a number to "
    "/logs/verifier/reward.txt, or an object of numbers to reward.json"
)
NOT_FINITE = "The task's verifier wrote a reward that is no finite number that a float can hold"
SEVERAL = (
    "The task's verifier wrote several rewards, and none of them is called 'reward', so that "
    "none is the sample's: name the one that counts 'reward' in /logs/verifier/reward.json"
)
_SHOWN = 200


def rewarded(sample: RolloutSample, rewards: Mapping[str, float | int]) -> ExecutionResult:
    """The sample with the reward that the tests gave it.

    That is the one called ``reward``, or the only one (Harbor's uploads and its mean take it,
    too); it is never made up. All are in ``extra_fields["rewards"]`` unless it is the
    one called ``reward`` alone.
    """
    wrong = [name for name, value in rewards.items() if not _is_finite(value)]
    if wrong:
        return refusal(f"{NOT_FINITE} ({_shown(wrong)})", sample=sample)
    if set(rewards) - {REWARD}:
        extra = {**sample.extra_fields, "rewards": dict(rewards)}
        sample = sample.model_copy(update={"extra_fields": extra}, deep=True)
    if REWARD in rewards:
        value = rewards[REWARD]
    elif len(rewards) == 1:
        value = next(iter(rewards.values()))
    else:
        reason = f"{SEVERAL} ({_shown(rewards)})" if rewards else NO_REWARD
        return refusal(reason, sample=sample)
    return ExecutionResult(
        status=RolloutStatus.SUCCESS,
        sample=sample.model_copy(update={"reward": float(value)}, deep=True),
    )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer may be larger than any float
        return False


def _shown(names: object) -> str:
    return ", ".join(map(repr, names))[:_SHOWN]  # type: ignore[call-overload]
