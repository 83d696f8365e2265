"""ATIF documents, ours and those of others, become chat messages."""

import pytest

from osmosis_ai.rollout.container.trajectories import messages_from_trajectory


def test_a_messages_list_is_returned_as_it_is() -> None:
    messages = [{"role": "user", "content": "x"}]
    assert messages_from_trajectory({"messages": messages}) is messages


def test_a_document_of_another_agent() -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": "go"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": [
                {"tool_call_id": "t", "function_name": "bash", "arguments": {"cmd": "ls"}}
            ],
            "observation": {"results": [{"source_call_id": "t", "content": "a.txt"}]},
        },
        {
            "step_id": 3,
            "source": "agent",
            "message": [
                {"type": "image", "source": {"media_type": "image/png", "path": "shot.png"}}
            ],
            "reasoning_content": "hm",
            "observation": {"results": [{"content": None}]},
        },
    ]
    assert messages_from_trajectory({"schema_version": "ATIF-v1.4", "steps": steps}) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "t",
                    "type": "function",
                    "function": {"name": "bash", "arguments": '{"cmd": "ls"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "t", "content": "a.txt"},
        {
            "role": "assistant",
            "content": [{"type": "image_url", "image_url": {"url": "shot.png"}}],
            "reasoning_content": "hm",
        },
        {"role": "tool", "content": ""},
    ]


def test_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="'steps'"):
        messages_from_trajectory({"turns": []})
