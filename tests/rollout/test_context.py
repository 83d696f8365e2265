"""The contexts of a workflow, a grader and a rollout."""

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import (
    AgentWorkflowContext,
    GraderContext,
    RolloutContext,
    RolloutSample,
    RolloutStatus,
    SampleSource,
    get_rollout_context,
)
from osmosis_ai.rollout.context import (
    API_KEY_ENV,
    CHAT_COMPLETIONS_URL_ENV,
    ROLLOUT_ID_ENV,
    RolloutProgress,
)


class Source(SampleSource):
    async def get_sample(self) -> RolloutSample:
        return RolloutSample(messages=[{"role": "assistant", "content": "hi"}])


def test_workflow_context_has_no_label() -> None:
    ctx: AgentWorkflowContext[Any] = AgentWorkflowContext(prompt=[])
    assert not hasattr(ctx, "label")
    assert (ctx.config, ctx.metadata, ctx.artifacts_dir) == (None, None, None)


def test_set_reward() -> None:
    ctx = GraderContext(sample=RolloutSample())
    ctx.set_reward(1)
    assert ctx.sample is not None
    assert ctx.sample.reward == 1.0
    with pytest.raises(ValidationError):
        ctx.set_reward(float("nan"))
    with pytest.raises(ValueError, match="no sample to reward"):
        GraderContext().set_reward(1.0)


def test_nested_contexts_are_restored() -> None:
    assert get_rollout_context() is None
    with RolloutContext(rollout_id="outer") as outer:
        with RolloutContext(rollout_id="inner") as inner:
            assert get_rollout_context() is inner
            with outer:
                assert get_rollout_context() is outer
            assert get_rollout_context() is inner
        assert get_rollout_context() is outer
    assert get_rollout_context() is None


def test_restored_after_an_error() -> None:
    with RolloutContext(rollout_id="outer") as outer:
        with pytest.raises(ValueError, match="inside"), RolloutContext():
            raise ValueError("inside")
        assert get_rollout_context() is outer


async def test_tasks_do_not_see_each_others_contexts() -> None:
    async def one(rollout_id: str) -> str:
        with RolloutContext(rollout_id=rollout_id):
            await asyncio.sleep(0.01)
            context = get_rollout_context()
            return context.rollout_id if context else ""

    ids = [f"r{number}" for number in range(5)]
    assert await asyncio.gather(*map(one, ids)) == ids


async def test_one_context_may_be_held_by_several_tasks() -> None:
    shared = RolloutContext(rollout_id="shared")

    async def hold(seconds: float) -> bool:
        with shared:
            await asyncio.sleep(seconds)
        return get_rollout_context() is outer

    with RolloutContext(rollout_id="outer") as outer:
        assert all(await asyncio.gather(hold(0.01), hold(0.03), hold(0.02)))


def test_environment_fallbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHAT_COMPLETIONS_URL_ENV, "http://env/v1")
    monkeypatch.setenv(API_KEY_ENV, "env-key")
    monkeypatch.setenv(ROLLOUT_ID_ENV, "env-id")
    from_env = RolloutContext()
    assert from_env.chat_completions_url == "http://env/v1"
    assert from_env.api_key == "env-key"
    assert from_env.rollout_id == "env-id"
    given = RolloutContext("http://given/v1", "given-key", "given-id")
    assert given.chat_completions_url == "http://given/v1"
    assert (given.api_key, given.rollout_id) == ("given-key", "given-id")


def test_without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (CHAT_COMPLETIONS_URL_ENV, API_KEY_ENV, ROLLOUT_ID_ENV):
        monkeypatch.delenv(name, raising=False)
    context = RolloutContext()
    assert (context.chat_completions_url, context.api_key, context.rollout_id) == ("", None, "")


@pytest.mark.parametrize("show", [repr, str, "{}".format])
def test_the_key_is_never_shown(show: "type[str]") -> None:
    shown = show(RolloutContext("http://x/v1", "a-very-secret-key", "r1"))
    assert "secret" not in shown
    assert "r1" in shown


async def test_one_sample_source() -> None:
    context = RolloutContext(rollout_id="r1")
    assert await context.get_sample() is None
    context.set_sample_source(Source())
    sample = await context.get_sample()
    assert sample is not None
    assert sample.messages == [{"role": "assistant", "content": "hi"}]
    with pytest.raises(ValueError, match="already has a sample source"):
        context.set_sample_source(Source())


async def test_preview_is_optional() -> None:
    assert await Source().get_preview(10) is None


async def test_progress_wakes_its_waiters_and_ends_once() -> None:
    progress = RolloutProgress()
    waiter = asyncio.ensure_future(progress.wait_for_status_change(RolloutStatus.QUEUED))
    await asyncio.sleep(0)
    progress.set_status(RolloutStatus.QUEUED)
    assert not waiter.done()
    progress.set_status(RolloutStatus.RUNNING)
    assert await waiter is RolloutStatus.RUNNING
    progress.set_status(RolloutStatus.SUCCESS)
    progress.set_status(RolloutStatus.FAILURE)
    assert progress.status is RolloutStatus.SUCCESS
    assert await progress.wait_for_status_change(RolloutStatus.RUNNING) is RolloutStatus.SUCCESS


async def test_an_endpoint_fills_in_what_is_not_said() -> None:
    async with (
        Gateway(advertise_url="https://engine.example") as gateway,
        gateway.open("r", "embedded/echo") as endpoint,
    ):
        context = RolloutContext(rollout_id="r", endpoint=endpoint)
        assert context.chat_completions_url == endpoint.local_url != endpoint.url
        assert context.api_key == endpoint.token
        assert endpoint.token not in repr(context)
        assert context == RolloutContext(endpoint.local_url, endpoint.token, "r")
        given = RolloutContext("http://model/v1", "k", endpoint=endpoint)
        assert (given.chat_completions_url, given.api_key) == ("http://model/v1", "k")
