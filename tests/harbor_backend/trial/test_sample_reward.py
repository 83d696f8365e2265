"""Whatever numbers a task's tests wrote: the reward is one of them, and none is made up."""

import math

from hypothesis import given
from hypothesis import strategies as st

from harbor_backend.trial.images import build_category
from harbor_backend.trial.sample_reward import rewarded
from osmosis_ai.rollout import RolloutSample, RolloutStatus
from osmosis_ai.rollout.types.status import RolloutErrorCategory

numbers = st.integers() | st.floats() | st.sampled_from([10**400, -(10**309)])
names = st.sampled_from(["reward", "score", "style"]) | st.text(max_size=5)
SAMPLE = RolloutSample(label="blue", extra_fields={"kept": 1})


def is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


@given(st.dictionaries(names, numbers, max_size=3))
def test_the_reward_is_one_that_was_written(rewards: dict[str, float | int]) -> None:
    before = SAMPLE.model_copy(deep=True)
    result = rewarded(SAMPLE, rewards)
    assert before == SAMPLE
    assert result.sample is not None
    candidates = [rewards["reward"]] if "reward" in rewards else list(rewards.values())
    if len(candidates) == 1 and all(map(is_finite, rewards.values())):
        assert result.status is RolloutStatus.SUCCESS
        assert result.is_scored
        assert result.sample.reward == float(candidates[0])
    else:
        assert result.err_category is RolloutErrorCategory.VALIDATION_ERROR
        assert result.sample.reward is None
    if all(map(is_finite, rewards.values())) and set(rewards) - {"reward"}:
        assert result.sample.extra_fields == {"kept": 1, "rewards": rewards}


@given(st.text(max_size=300))
def test_any_text_of_a_builder_is_read(text: str) -> None:
    assert build_category(text) in {
        None,
        RolloutErrorCategory.VALIDATION_ERROR,
        RolloutErrorCategory.INFRASTRUCTURE_ERROR,
    }
