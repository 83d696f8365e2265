"""Model calls as Harbor's ``agent_result``, by table."""

from typing import Any

import pytest
from harbor.models.agent.context import AgentContext

from harbor_backend.jobs.usage import agent_context, calls_of, filled
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics


def call(**fields: Any) -> LlmCallMetrics:
    return LlmCallMetrics(**fields)


def test_no_call_is_no_context() -> None:
    assert agent_context([]) is None


@pytest.mark.parametrize(
    ("calls", "totals"),
    [
        ([call()], (None, None, None, None)),
        ([call(prompt_tokens=0, completion_tokens=2)], (0, None, 2, None)),
        (
            [call(prompt_tokens=3, cached_tokens=1, cost_usd=0.5), call(prompt_tokens=4)],
            (7, 1, None, 0.5),
        ),
    ],
)
def test_what_is_known_is_summed(calls: list[LlmCallMetrics], totals: tuple[Any, ...]) -> None:
    used = agent_context(calls)
    assert used is not None
    assert totals == (
        used.n_input_tokens,
        used.n_cache_tokens,
        used.n_output_tokens,
        used.cost_usd,
    )
    assert used.rollout_details is None


def test_usage_by_model() -> None:
    used = agent_context(
        [
            call(model_name="a", prompt_tokens=1, cost_usd=1.0),
            call(model_name="b", completion_tokens=2),
            call(model_name="a", prompt_tokens=3, cost_usd=0.5),
            call(prompt_tokens=100),
        ]
    )
    assert used is not None
    assert used.model_usage is not None
    assert {name: one.model_dump(exclude_defaults=True) for name, one in used.model_usage.items()}
    a, b = used.model_usage["a"], used.model_usage["b"]
    assert (a.n_input_tokens, a.cost_usd) == (4, 1.5)
    assert (b.n_output_tokens, b.cost_usd) == (2, None)


def test_a_turn_without_exact_ids_is_empty_and_says_why() -> None:
    whole = call(prompt_token_ids=[1], completion_token_ids=[2, 3], logprobs=[-1.0, -2.0])
    gap = call(prompt_token_ids=[1], completion_token_ids=[9], extra={"token_gap": "cut"})
    used = agent_context([whole, gap, call(prompt_tokens=1)])
    assert used is not None
    assert used.rollout_details == [
        {
            "prompt_token_ids": [[1], [], []],
            "completion_token_ids": [[2, 3], [], []],
            "logprobs": [[-1.0, -2.0], [], []],
            "extra": {"token_gap": [None, "cut", "the upstream gave no token ids"]},
        }
    ]


def test_what_an_agent_says_of_itself_wins() -> None:
    own = AgentContext(n_input_tokens=5)
    seen = AgentContext(n_input_tokens=9, n_output_tokens=2)
    both = filled(own, seen)
    assert both is not None
    assert (both.n_input_tokens, both.n_output_tokens) == (5, 2)
    assert filled(None, seen) is seen
    assert filled(own, None) is own


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"steps": None},
        {"steps": [1, {"source": "agent"}, {"source": "user", "metrics": {"prompt_tokens": 1}}]},
        {"steps": [{"source": "agent", "metrics": {"prompt_tokens": "many"}}]},
        {"extra": {"osmosis": []}},
    ],
)
def test_a_trajectory_without_calls(document: dict[str, Any]) -> None:
    assert calls_of(document) == []
