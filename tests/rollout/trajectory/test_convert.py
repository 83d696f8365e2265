"""Chat messages become ATIF steps."""

import sys
from typing import Any

import pytest

from osmosis_ai.rollout import RolloutSample
from osmosis_ai.rollout.container.trajectories import messages_from_trajectory
from osmosis_ai.rollout.trajectory import convert_sample_to_trajectory
from osmosis_ai.rollout.trajectory.convert import messages_to_steps
from tests.rollout.trajectory.documents import call, document

PNG = "https://example.com/a.png?size=2"


def steps_of(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = document(messages)["steps"]
    return steps


def test_a_plain_conversation() -> None:
    assert document(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "2 + 2?"},
            {"role": "assistant", "content": "4", "reasoning_content": "easy"},
        ],
        {"label": "4", "reward": 1.0, "metrics": {"turns": 1}},
        request_metadata={"row": 7},
    ) == {
        "schema_version": "ATIF-v1.8",
        "session_id": "r-1",
        "trajectory_id": "r-1",
        "agent": {
            "name": "osmosis-rollout-sdk",
            "version": document([])["agent"]["version"],
        },
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be brief."},
            {"step_id": 2, "source": "user", "message": "2 + 2?"},
            {"step_id": 3, "source": "agent", "message": "4", "reasoning_content": "easy"},
        ],
        "final_metrics": {"total_steps": 3},
        "extra": {
            "osmosis": {
                "rollout_id": "r-1",
                "label": "4",
                "reward": 1.0,
                "sample_metrics": {"turns": 1},
                "sample_extra_fields": {},
                "request_metadata": {"row": 7},
            }
        },
    }


def test_no_messages_still_make_a_document() -> None:
    built = document([])
    assert len(built["steps"]) == 1
    assert built["final_metrics"]["total_steps"] == 0
    assert "no messages" in built["notes"]
    assert messages_from_trajectory(built) == []


def test_a_sample_label_wins_over_the_requests() -> None:
    assert document([], request_label="req")["extra"]["osmosis"]["label"] == "req"
    assert document([], {"label": "own"}, request_label="req")["extra"]["osmosis"]["label"] == "own"


@pytest.mark.parametrize(
    ("role", "source", "extra"),
    [
        ("developer", "system", {"original_role": "developer"}),
        ("critic", "user", {"original_role": "critic"}),
        (3, "user", {"original_role": 3}),
        ("user", "user", None),
    ],
)
def test_roles(role: Any, source: str, extra: dict[str, Any] | None) -> None:
    (step,) = steps_of({"role": role, "content": "x"})
    assert step["source"] == source
    assert step.get("extra") == extra


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, ""),
        ("text", "text"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"odd": 1}, '{"odd": 1}'),
        (
            [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": PNG}}],
            [
                {"type": "text", "text": "see"},
                {"type": "image", "source": {"media_type": "image/png", "path": PNG}},
            ],
        ),
    ],
)
def test_content(content: Any, message: Any) -> None:
    (step,) = steps_of({"role": "user", "content": content})
    assert step["message"] == message


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0K"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/no-extension"}},
        {"type": "image_url", "image_url": {"url": PNG, "detail": "high"}},
        {"type": "image_url", "image_url": PNG},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "text", "text": "cached", "cache_control": {"type": "ephemeral"}},
        {"type": "refusal", "refusal": "no"},
        "bare",
        None,
    ],
)
@pytest.mark.parametrize("role", ["user", "tool"])
def test_no_content_part_is_lost(part: Any, role: str) -> None:
    content = [{"type": "text", "text": '{"looks": "like JSON"}'}, part]
    message: dict[str, Any] = {"role": role, "content": content}
    history = [{"role": "assistant", "content": "", "tool_calls": [call("c")]}]
    if role == "tool":
        message["tool_call_id"] = "c"
    built = document([*history, message])
    assert messages_from_trajectory(built)[-1]["content"] == content


def test_results_find_their_call_backwards_over_other_messages() -> None:
    first, _, second, last = steps_of(
        {"role": "assistant", "content": None, "tool_calls": [call("call_0"), call("b")]},
        {"role": "tool", "tool_call_id": "call_0", "content": "one"},
        {"role": "user", "content": "still there?"},
        {"role": "assistant", "content": "", "tool_calls": [call("call_0")]},
        {"role": "system", "content": "note"},
        {"role": "tool", "tool_call_id": "b", "content": "late"},
        {"role": "tool", "tool_call_id": "call_0", "content": "two"},
        {"role": "tool", "tool_call_id": "unknown", "content": "stray"},
    )
    assert last["message"] == "note"
    assert first["observation"]["results"] == [
        {"source_call_id": "call_0", "content": "one"},
        {"source_call_id": "b", "content": "late"},
    ]
    assert second["observation"]["results"] == [
        {"source_call_id": "call_0", "content": "two"},
        {"content": "stray", "extra": {"tool_call_id": "unknown"}},
    ]


def test_a_result_before_any_agent_step_keeps_a_step_of_its_own() -> None:
    messages = [{"role": "function", "name": "f", "content": "x"}]
    (step,) = steps_of(*messages)
    assert step["source"] == "system"
    assert step["message"] == ""
    assert step["extra"]["original_role"] == "function"
    assert messages_from_trajectory({"steps": [step]}) == messages


@pytest.mark.parametrize(
    ("arguments", "converted"),
    [
        ({"a": None}, {"a": None}),
        ('{"a":1}', {"a": 1}),
        ("", {"_raw": ""}),
        ("[1]", {"_raw": "[1]"}),
        ('{"a": NaN}', {"_raw": '{"a": NaN}'}),
        ('{"_raw": "x"}', {"_raw": "x"}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("{}", {}),
        (None, {}),
    ],
)
def test_arguments(arguments: Any, converted: dict[str, Any]) -> None:
    built = document([{"role": "assistant", "tool_calls": [call("c", arguments=arguments)]}])
    assert built["steps"][0]["tool_calls"][0]["arguments"] == converted
    (back,) = messages_from_trajectory(built)
    if isinstance(arguments, str):
        assert back["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize("calls", ["text", 3, {"id": "c"}, [], ["text", None]])
def test_a_malformed_container_of_calls_is_left_out(calls: Any) -> None:
    (step,) = steps_of({"role": "assistant", "content": "x", "tool_calls": calls})
    assert "tool_calls" not in step


def test_a_call_without_id_and_name_gets_placeholders() -> None:
    (step,) = steps_of({"role": "assistant", "tool_calls": [{"function": {}}, {"id": 7}]})
    assert [(c["tool_call_id"], c["function_name"]) for c in step["tool_calls"]] == [
        ("call_0", "unknown"),
        ("7", "unknown"),
    ]


def test_agent_only_fields_of_other_roles_move_to_extra() -> None:
    message = {"role": "user", "content": "x", "reasoning_content": "r", "tool_calls": [call("c")]}
    (step,) = steps_of(message)
    assert step["extra"] == {"reasoning_content": "r", "tool_calls": [call("c")]}
    assert messages_from_trajectory({"steps": [step]}) == [message]


@pytest.mark.parametrize(
    ("fields", "timestamp"),
    [
        ({"created_at": 0}, "1970-01-01T00:00:00+00:00"),
        ({"timestamp": "2026-01-02T03:04:05Z"}, "2026-01-02T03:04:05Z"),
        ({"created_at": "soon", "completed_at": 1.5}, "1970-01-01T00:00:01.500000+00:00"),
        ({"extra": {"timestamp": "2026-01-02"}}, "2026-01-02"),
        ({"created_at": True}, None),
        ({"created_at": 1e300}, None),
        ({}, None),
    ],
)
def test_timestamps(fields: dict[str, Any], timestamp: str | None) -> None:
    (step,) = steps_of({"role": "user", "content": "x", **fields})
    assert step.get("timestamp") == timestamp


def test_usage_and_model_of_an_agent() -> None:
    chat = {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}
    responses = {
        "input_tokens": 5,
        "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": 4},
    }
    one, two, three, four = steps_of(
        {"role": "assistant", "content": "a", "usage": chat, "model": "m-1"},
        {
            "role": "assistant",
            "content": "b",
            "extra": {"response": {"usage": responses, "model": "m-2"}},
        },
        {"role": "assistant", "content": "c", "usage": {"prompt_tokens": "many"}},
        {"role": "user", "content": "d", "usage": chat, "model": "m-1"},
    )
    assert one["metrics"] == {
        "prompt_tokens": 9,
        "completion_tokens": 0,
        "extra": {"total_tokens": 9},
    }
    assert (one["model_name"], one["llm_call_count"]) == ("m-1", 1)
    assert two["metrics"] == {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "cached_tokens": 4,
        "extra": {"input_tokens_details": {"cached_tokens": 4}},
    }
    assert two["model_name"] == "m-2"
    for step in (three, four):
        assert not {"metrics", "model_name", "llm_call_count"} & step.keys()


def test_inline_usage_is_summed_and_absent_usage_stays_absent() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    turn = {"role": "assistant", "content": "x", "usage": usage}
    assert document([turn, turn])["final_metrics"] == {
        "total_prompt_tokens": 6,
        "total_completion_tokens": 8,
        "total_steps": 2,
    }
    assert document([{"role": "user", "content": "x"}])["final_metrics"] == {"total_steps": 1}


def test_a_trajectory_opt_out_has_no_document() -> None:
    opted_out = RolloutSample(trajectory_messages=None)
    with pytest.raises(ValueError, match="trajectory_messages is None"):
        convert_sample_to_trajectory(opted_out, rollout_id="r")


def _work(messages: list[dict[str, Any]]) -> int:
    """How many Python and C functions a conversion calls."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        messages_to_steps(messages)
    finally:
        sys.setprofile(None)
    return calls


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "turn",
    [
        [{"role": "tool", "tool_call_id": "nobody's", "content": "ok"}],
        [{"role": "user", "content": "go on"}],
        [{"role": "assistant", "content": "", "tool_calls": [CALL]}],
        [
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ],
    ],
    ids=["results of no call", "users", "calls without results", "calls and results"],
)
def test_a_conversation_costs_as_much_as_it_is_long(turn: list[dict[str, Any]]) -> None:
    assert _work(turn * 800) < 2.2 * _work(turn * 400)
