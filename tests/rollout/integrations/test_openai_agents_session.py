"""The session of the OpenAI Agents integration, in and out of rollouts."""

from typing import Any

import pytest

from osmosis_ai.rollout import RolloutContext
from osmosis_ai.rollout.integrations.agents.openai_agents import (
    OsmosisMemorySession,
    SessionSampleSource,
)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def context() -> RolloutContext:
    return RolloutContext(chat_completions_url="http://127.0.0.1:9/v1", rollout_id="r-7")


async def test_an_ordinary_session_outside_a_rollout() -> None:
    session, other = OsmosisMemorySession(), OsmosisMemorySession()
    assert session.session_id != other.session_id
    assert await session.pop_item() is None
    await session.add_items([user("1"), user("2"), user("3")])
    assert await session.get_items() == [user("1"), user("2"), user("3")]
    assert await session.get_items(limit=2) == [user("2"), user("3")]
    assert await session.get_items(limit=0) == []
    assert await session.get_items(limit=9) == [user("1"), user("2"), user("3")]
    assert await session.pop_item() == user("3")
    held = await session.get_items()
    held.append(user("mine"))
    assert session.items == [user("1"), user("2")]
    await session.clear_session()
    assert await session.get_items() == []


async def test_one_session_per_rollout_is_the_source() -> None:
    with context() as active:
        session = OsmosisMemorySession()
        assert isinstance(active.sample_source, SessionSampleSource)
        assert active.sample_source.session is session
        with pytest.raises(ValueError, match="already has a sample source"):
            OsmosisMemorySession()
        await session.add_items([user("hi")])
    sample = await active.get_sample()
    assert sample is not None
    assert sample.messages == sample.trajectory_messages == [user("hi")]
    assert await session.get_items() == [user("hi")]


@pytest.mark.parametrize("made_in_another", [True, False])
async def test_a_session_of_another_context_is_refused(made_in_another: bool) -> None:
    if made_in_another:
        with context():
            session = OsmosisMemorySession()
    else:
        session = OsmosisMemorySession()
    with context():
        for call in (
            session.get_items(),
            session.add_items([user("x")]),
            session.pop_item(),
            session.clear_session(),
        ):
            with pytest.raises(RuntimeError, match="not registered with rollout 'r-7'"):
                await call


async def test_items_that_cannot_be_converted_are_a_sample_without_trajectory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reference: Any = {"type": "item_reference", "id": "i"}
    with context() as active:
        await OsmosisMemorySession().add_items([user("hi"), reference])
        sample = await active.get_sample()
    assert sample is not None
    assert sample.messages == [user("hi"), reference]
    assert sample.trajectory_messages is None
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "Failed to convert OpenAI Agents" in warning.getMessage()


async def test_a_preview_is_an_isolated_copy_of_the_latest_items() -> None:
    with context() as active:
        session = OsmosisMemorySession()
        await session.add_items([user(str(n)) for n in range(5)])
    source = active.sample_source
    assert source is not None
    assert await source.get_preview(0) is None
    assert await source.get_preview(-1) is None
    preview = await source.get_preview(2)
    assert preview is not None
    assert preview.messages == preview.trajectory_messages == [user("3"), user("4")]
    preview.messages[0]["content"] = "changed"
    assert session.items[3] == user("3")


async def test_a_rewound_session_forgets_the_system_prompts_behind_its_end() -> None:
    with context() as active:
        session = OsmosisMemorySession()
        source = active.sample_source
        assert isinstance(source, SessionSampleSource)
        await session.add_items([user("1")])
        source.note_call("First.", [user("1")])
        await session.add_items([user("2")])
        source.note_call("Second.", [user("2")])
        await session.pop_item()
        source.note_call("Third.", [user("1")])
        sample = await active.get_sample()
    assert sample is not None
    assert sample.trajectory_messages == [
        {"role": "system", "content": "First."},
        user("1"),
        {"role": "system", "content": "Third."},
    ]
