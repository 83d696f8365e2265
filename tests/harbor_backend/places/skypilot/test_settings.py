"""What a caller may say, and what the errors say back."""

import platform
from typing import Any

import pytest

from harbor_backend.places.skypilot.settings import REGISTRY_ENV, SkypilotSettings

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def test_everything_may_be_given() -> None:
    given: dict[str, Any] = {
        "registry": "ghcr.io/team/",
        "pool": "warm",
        "context_name": "gke",
        "namespace": "sandboxes",
        "secrets": ["HF_TOKEN"],
        "platform": f"linux/{MACHINE}",
        "ensure_pool": {"image": "python:3.12", "replicas": 3, "cpus": 1, "memory_gb": 2},
    }
    settings = SkypilotSettings.of(given)
    assert settings.registry == "ghcr.io/team"
    assert settings.ensure_pool is not None
    assert settings.ensure_pool.replicas == 3


def test_the_registry_may_come_from_harbors_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REGISTRY_ENV, "registry.internal:5000/osmosis")
    assert SkypilotSettings.of({}).registry == "registry.internal:5000/osmosis"
    assert SkypilotSettings.of({"registry": "ghcr.io/x"}).registry == "ghcr.io/x"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pol": "warm"}, "unknown key 'pol'; known are registry, pool"),
        ({"pool": "Warm_1"}, "pool='Warm_1'"),
        ({"registry": "https://ghcr.io"}, "registry='https://ghcr.io'"),
        ({"platform": "linux/s390x"}, "platform='linux/s390x': must be 'linux/"),
        ({"secrets": "HF_TOKEN"}, "secrets='HF_TOKEN'"),
        ({"ensure_pool": {"image": "a", "replicas": 1}}, "ensure_pool needs pool="),
        ({"pool": "p", "ensure_pool": {"replicas": -1, "image": "a"}}, "ensure_pool.replicas=-1"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"kwargs for skypilot") as caught:
        SkypilotSettings.of(given)
    assert said in str(caught.value)
