"""Documented import path of ``HarborBackend``, loaded on first use."""

from typing import TYPE_CHECKING, Any

from osmosis_ai.common.extras import needs_extra

if TYPE_CHECKING:
    from harbor_backend import HarborBackend, TaskMode

__all__ = ["HarborBackend", "TaskMode"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs_extra(
        "harbor", "HarborBackend", "harbor", "docker", "aiohttp", "platformdirs", "tomlkit", "uv"
    ):
        import harbor_backend

        return getattr(harbor_backend, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
