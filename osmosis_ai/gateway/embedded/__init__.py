"""Small deterministic policies: a model for demos and tests without a model."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from urllib.parse import parse_qsl

from pydantic import ValidationError

from osmosis_ai.gateway.embedded.base import Answer, Policy, PolicyParameters, ToolCall
from osmosis_ai.gateway.embedded.echo import Echo
from osmosis_ai.gateway.embedded.multiply import Multiply
from osmosis_ai.gateway.embedded.shell import Shell

__all__ = ["POLICIES", "Answer", "Policy", "PolicyParameters", "ToolCall", "make_policy"]

POLICIES: Mapping[str, Callable[[dict[str, str]], Policy]] = MappingProxyType(
    {
        "echo": Echo.from_parameters,
        "multiply": Multiply.from_parameters,
        "shell": Shell.from_parameters,
    }
)
"""Name in ``embedded/<name>`` to what makes the policy from its parameters."""


def make_policy(name: str, parameters: str = "") -> Policy:
    """Make the policy that ``embedded/<name>?<parameters>`` means.

    Raises:
        ValueError: the name is unknown, or a parameter is unknown, doubled or wrong.
    """
    if name not in POLICIES:
        raise ValueError(
            f"there is no embedded policy {name!r}; choose one of {', '.join(sorted(POLICIES))}"
        )
    try:
        return POLICIES[name](_parameters(parameters))
    except ValidationError as exc:
        problem = exc.errors(include_url=False)[0]
        field = ".".join(str(part) for part in problem["loc"])
        raise ValueError(
            f"embedded/{name}: {field}={problem['input']!r}: {problem['msg']}"
        ) from exc


def _parameters(text: str) -> dict[str, str]:
    pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    values: dict[str, str] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"embedded policy parameter {key!r} is given twice")
        values[key] = value
    return values
