"""A listing of any shape is read; what is not understood is said, not passed over."""

from types import SimpleNamespace
from typing import Any

import pytest

from harbor_backend.places.skypilot.errors import SkypilotError
from harbor_backend.places.skypilot.listing import Listed, list_sandboxes, listed, terminate_listed

A, B = SimpleNamespace(name="a"), SimpleNamespace(sandbox_name="b")


@pytest.mark.parametrize(
    "answer",
    [
        ["a", "b"],
        ("a", "b"),
        [A, B],
        [{"name": "a"}, {"sandbox_name": "b"}],
        [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
        {"sandboxes": [{"name": "a"}, {"name": "b"}]},
        {"a": {"status": "running"}, "b": {"status": "running"}},
        {"data": {"items": ["a", "b"]}},
        SimpleNamespace(items=[A, B]),
        iter([A, B]),
    ],
)
def test_names_are_found(answer: Any) -> None:
    assert [sandbox.name for sandbox in listed(answer)] == ["a", "b"]


@pytest.mark.parametrize("answer", [None, [], {}, {"sandboxes": []}, iter([])])
def test_nothing_is_nothing(answer: Any) -> None:
    assert listed(answer) == []


@pytest.mark.parametrize("answer", [[1, 2], [object()], 7, [{"id": 3}, {"id": 4}]])
def test_what_holds_no_name_is_an_error(answer: Any) -> None:
    with pytest.raises(SkypilotError, match="no name"):
        listed(answer)


async def test_the_call_may_be_of_any_kind() -> None:
    async def paged() -> Any:
        async def pages() -> Any:
            for entry in (A, B):
                yield entry

        return pages()

    async def awaited() -> Any:
        return [A, B]

    for ls in (lambda: [A, B], awaited, SimpleNamespace(aio=awaited), paged):
        found = await list_sandboxes(SimpleNamespace(ls=ls))
        assert [sandbox.name for sandbox in found] == ["a", "b"]


async def test_a_failing_call_is_an_error_of_ours() -> None:
    def refuse() -> None:
        raise PermissionError("who are you")

    with pytest.raises(SkypilotError, match="who are you"):
        await list_sandboxes(SimpleNamespace(ls=refuse))


async def test_whatever_can_end_a_sandbox_is_used() -> None:
    ended: list[str] = []
    handle = SimpleNamespace(terminate=lambda: ended.append("handle"))
    await terminate_listed(SimpleNamespace(), Listed("a", handle))
    await terminate_listed(SimpleNamespace(get=lambda name: handle), Listed("a", "a"))
    await terminate_listed(SimpleNamespace(terminate=ended.append), Listed("a", "a"))
    assert ended == ["handle", "handle", "a"]
    with pytest.raises(SkypilotError, match="sky sandbox terminate a"):
        await terminate_listed(SimpleNamespace(), Listed("a", "a"))
