"""The policy that multiplies two numbers, and is wrong now and then."""

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from pydantic import Field

from osmosis_ai.gateway.embedded.base import Answer, PolicyParameters, ToolCall
from osmosis_ai.gateway.embedded.chat import ChatRequest, Function

_INTEGER = r"(?:\d{1,3}(?:,\d{3})+|\d{1,30})"
_FACTOR = rf"((?<!\w)[-−])?(?<![\w.])({_INTEGER})"
_PRODUCT = re.compile(
    rf"{_FACTOR}\s*(?:[x×*·]|times|multiplied\s+by)\s*([-−])?({_INTEGER})(?!\d|[.,]\d)",
    re.IGNORECASE,
)
_NO_PRODUCT = "I can multiply two whole numbers, such as 12 x 34, but I find no such product here."
_LARGEST_SLIP = 9


class MultiplyParameters(PolicyParameters):
    """Parameters of ``embedded/multiply``."""

    wrong: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    """The fraction of prompts whose final answer is wrong."""

    seed: int = 0
    """Chooses which prompts, and how wrong."""


@dataclass(frozen=True)
class Multiply:
    """Finds the first product in the last user message and answers it.

    When the agent offers a fitting tool, the policy calls it once and answers after the
    result. It never reads the result: the answer depends on the seed and the prompt's
    words alone, so it is the same in every order, process and backend.
    """

    parameters: MultiplyParameters

    @classmethod
    def from_parameters(cls, values: dict[str, str]) -> Self:
        """Validate and make.

        Raises:
            pydantic.ValidationError: a parameter is unknown or wrong.
        """
        return cls(MultiplyParameters.model_validate(values))

    @property
    def latency_sec(self) -> float:
        """See ``Policy``."""
        return self.parameters.latency_ms / 1000

    def answer(self, request: ChatRequest) -> Answer:
        """See ``Policy``."""
        factors = find_factors(request.prompt)
        if factors is None:
            return Answer(_NO_PRODUCT)
        a, b = factors
        tool = None if request.has_tool_result else _fitting_tool(request)
        if tool is not None:
            return Answer(tool_call=self._tool_call(tool, a, b, request.prompt))
        result = a * b + self._slip(request.prompt)
        return Answer(f"I multiply {a} by {b}.\nThe result is {result}.\n#### {result}")

    def _tool_call(self, tool: tuple[str, str, str], a: int, b: int, prompt: str) -> ToolCall:
        name, first, second = tool
        call_id = f"call_{self._digest('call', name, prompt).hex()[:24]}"
        return ToolCall(call_id, name, json.dumps({first: a, second: b}))

    def _slip(self, prompt: str) -> int:
        """By how much the answer to this prompt is off; 0 for most prompts."""
        digest = self._digest("slip", prompt)
        # 53 bits are what a float in [0, 1) holds exactly, so wrong=1 means every prompt.
        if int.from_bytes(digest[:8]) / 2 >= self.parameters.wrong * 2**63:
            return 0
        size = 1 + digest[8] % _LARGEST_SLIP
        return size if digest[9] % 2 else -size

    def _digest(self, *parts: str) -> bytes:
        # Whitespace is evened out, because a prompt's way through files may change it.
        words = [" ".join(part.split()) for part in parts]
        return sha256(
            "\0".join([str(self.parameters.seed), *words]).encode("utf-8", errors="surrogatepass")
        ).digest()


def find_factors(text: str) -> tuple[int, int] | None:
    """The first product of two whole numbers in ``text``.

    Understood are ``12 x 34``, ``12*34``, ``12 × 34``, ``12 times 34`` and
    ``12 multiplied by 34``, with minus signs and thousands separators.
    """
    found = _PRODUCT.search(text)
    if found is None:
        return None
    first_sign, first, second_sign, second = found.groups()
    return _integer(first_sign, first), _integer(second_sign, second)


def _integer(sign: str | None, digits: str) -> int:
    value = int(digits.replace(",", ""))
    return -value if sign else value


def _fitting_tool(request: ChatRequest) -> tuple[str, str, str] | None:
    """Name and the two parameter names of the tool to call, if one may and can be."""
    if request.tool_choice == "none":
        return None
    for tool in request.tools or []:
        function = tool.function
        if function is None or not _is_arithmetic(function.name):
            continue
        if (parameters := _two_numbers(function)) is not None:
            return function.name, *parameters
    return None


def _is_arithmetic(name: str) -> bool:
    return any(word in name.lower() for word in ("multiply", "calc"))


def _two_numbers(function: Function) -> tuple[str, str] | None:
    properties = function.parameters.get("properties")
    if not isinstance(properties, dict):
        return None
    numbers = [name for name, schema in properties.items() if _is_number(schema)]
    required = function.parameters.get("required")
    needed = set(required) if isinstance(required, list) else set()
    if len(numbers) < 2 or not needed <= set(numbers[:2]):
        return None
    return numbers[0], numbers[1]


def _is_number(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type")
    if isinstance(kinds, str):
        kinds = [kinds]
    if isinstance(kinds, list):
        return "integer" in kinds or "number" in kinds
    options = schema.get("anyOf")
    return isinstance(options, list) and any(_is_number(option) for option in options)
