"""What a run opens is closed at its end."""

import pytest

from osmosis_ai.rollout.closing import close_after_run, closing_after_run


async def test_last_opened_is_first_closed_also_after_a_failure() -> None:
    closed: list[str] = []

    def opens(name: str) -> None:
        async def close() -> None:
            closed.append(name)

        close_after_run(close)

    async def run() -> None:
        async with closing_after_run():
            opens("first")
            async with closing_after_run():
                opens("inner")
            assert closed == ["inner"]
            opens("second")
            raise ValueError("failed")

    opens("outside")
    with pytest.raises(ValueError, match="failed"):
        await run()
    assert closed == ["inner", "second", "first"]
