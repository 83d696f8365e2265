"""The embedded policy that drives the agents of these tests, and needs no model."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.gateway.embedded import make_policy
from osmosis_ai.gateway.embedded.chat import ChatRequest
from osmosis_ai.gateway.embedded.shell import find_command

TASK = "Do this:\n\n```sh\necho one\necho two\n```\n\nand nothing else.\n```bash\nrm x\n```"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "parameters": {
            "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
            "required": ["command", "description"],
        },
    },
}
READ = {"type": "function", "function": {"name": "read_command_log", "parameters": {}}}


def answer(*turns: tuple[str, str], **options: Any) -> Any:
    messages = [{"role": role, "content": text} for role, text in turns]
    return make_policy("shell").answer(ChatRequest.model_validate({"messages": messages} | options))


def test_a_shell_tool_is_called_once_with_all_that_it_requires() -> None:
    call = answer(("user", TASK), tools=[READ, BASH]).tool_call
    assert call.name == "bash"
    arguments = json.loads(call.arguments)
    assert arguments["command"] == "echo one\necho two"
    assert set(arguments) == {"command", "description"}
    later = answer(("user", TASK), ("assistant", ""), ("tool", "one"), tools=[READ, BASH])
    assert (later.text, later.tool_call) == ("Done.", None)


def test_an_agent_that_ends_by_a_command_is_given_it() -> None:
    prompt = f"{TASK}\nSubmit with `{SUBMIT}`."
    later = answer(("user", prompt), ("assistant", ""), ("tool", "one"), tools=[BASH])
    assert json.loads(later.tool_call.arguments)["command"] == SUBMIT
    first = answer(("user", prompt), tools=[BASH])
    assert first.tool_call.id != later.tool_call.id


def test_keystrokes_are_typed_and_then_the_task_is_complete() -> None:
    prompt = f'Answer as {{"keystrokes": "ls\\n"}}.\n{TASK}'
    first = json.loads(answer(("user", prompt)).text)
    assert [typed["keystrokes"] for typed in first["commands"]] == ["echo one\necho two\n"]
    assert not first["task_complete"]
    later = json.loads(answer(("user", prompt), ("assistant", "{}"), ("user", "$")).text)
    assert later["commands"] == []
    assert later["task_complete"]


def test_without_tools_the_answer_holds_the_command_as_a_block() -> None:
    assert find_command(answer(("user", TASK)).text) == "echo one\necho two"


@pytest.mark.parametrize("text", ["No block.", "```python\nx\n```", "```sh\n\n```", "```sh\nopen"])
def test_a_task_without_a_command_ends_at_once(text: str) -> None:
    found = answer(("user", text), tools=[BASH])
    assert found.tool_call is None
    assert "no fenced shell command" in found.text


@given(st.text(st.characters(codec="utf-8", exclude_characters="`\r"), min_size=1))
def test_any_command_is_found_in_text_and_in_json(command: str) -> None:
    text = f"Do:\n```bash\n{command}\n```\nFor example:\n```sh\nls\n```"
    expected = command.strip() or None
    assert find_command(text) == expected
    instruction = json.dumps([{"role": "user", "content": text}])
    assert find_command(f"{instruction}\n```sh\nls\n```") == expected
