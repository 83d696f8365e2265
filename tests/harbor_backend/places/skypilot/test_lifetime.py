"""How long a sandbox may live."""

import pytest

from harbor_backend.places.skypilot.lifetime import MAX_LIFETIME_SEC, check_budget, lifetime_sec


@pytest.mark.parametrize(
    ("budgets", "seconds"),
    [
        ([60.0, 30.0], 690),
        ([0.2], 601),
        ([None], 4200),
        ([None, 60.0], 4260),
        ([-5.0, 60.0], 660),
        ([3600.0] * 40, MAX_LIFETIME_SEC),
    ],
)
def test_it_is_what_the_deadlines_need(budgets: list[float | None], seconds: int) -> None:
    assert lifetime_sec(budgets) == seconds


def test_a_budget_that_the_platform_would_cut_is_refused() -> None:
    check_budget(None, "The agent's deadline")
    check_budget(3600, "The agent's deadline")
    with pytest.raises(ValueError, match=r"The agent's deadline is 3601s.*3600"):
        check_budget(3601, "The agent's deadline")
