"""What a model placeholder refuses: choosing the model, and being called."""

from typing import Any

import pytest

from osmosis_ai.rollout.integrations.agents.openai_agents import OsmosisRolloutModel


@pytest.mark.parametrize(
    "arguments",
    [{"model": "gpt"}, {"client_args": {"base_url": "http://x"}}, {"api_key": "k"}],
)
def test_a_placeholder_refuses_to_choose_the_model(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="active rollout decides"):
        OsmosisRolloutModel(**arguments)


@pytest.mark.parametrize("name", ["messages", "tools", "tool_choice", "stream"])
def test_params_that_belong_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"no '{name}' in params: .*"):
        OsmosisRolloutModel(params={name: None})


async def test_a_placeholder_cannot_be_called() -> None:
    placeholder = OsmosisRolloutModel()
    with pytest.raises(NotImplementedError, match="placeholder"):
        await placeholder.get_response("", "hi")
    with pytest.raises(NotImplementedError, match="placeholder"):
        placeholder.stream_response("", "hi")
