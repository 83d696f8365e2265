"""What the engine's record of an image decides."""

from typing import Any

import pytest

from harbor_backend.places.docker.image import Healthcheck, Image

SECOND = 10**9


@pytest.mark.parametrize(
    ("config", "check"),
    [
        (None, None),
        ({}, None),
        ({"Test": []}, None),
        ({"Test": ["NONE"]}, None),
        ({"Test": ["CMD-SHELL", "test -f /x"]},
         Healthcheck(("CMD-SHELL", "test -f /x"), 30, 30, 0, 3)),
        ({"Test": ["CMD", "a", "b"], "Interval": SECOND, "Timeout": 2 * SECOND,
          "StartPeriod": 3 * SECOND, "Retries": 4}, Healthcheck(("CMD", "a", "b"), 1, 2, 3, 4)),
    ],
)  # fmt: skip
def test_a_health_check(config: dict[str, Any] | None, check: Healthcheck | None) -> None:
    assert Healthcheck.of(config) == check


def test_how_long_a_health_check_may_take() -> None:
    assert Healthcheck(("CMD", "a"), 1, 2, 3, 4).longest_sec == 3 + 5 * (1 + 2)


@pytest.mark.parametrize(
    ("config", "passive", "names_home"),
    [
        (None, True, False),
        ({"Entrypoint": [], "Env": ["PATH=/bin", "HOMES=x"]}, True, False),
        ({"Entrypoint": ["/serve"]}, False, False),
        ({"Healthcheck": {"Test": ["CMD", "true"]}, "Env": ["HOME=/work"]}, False, True),
        ({"Healthcheck": {"Test": ["NONE"]}}, True, False),
    ],
)
def test_what_runs_by_itself(
    config: dict[str, Any] | None, passive: bool, names_home: bool
) -> None:
    image = Image.of("x:1", {"Id": "sha256:0", "Config": config})
    assert (image.is_passive, image.names_home) == (passive, names_home)
