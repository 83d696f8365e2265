"""The rollout server: a backend behind HTTP. Needs the extra ``server``, on first use only."""

from typing import TYPE_CHECKING, Any

from osmosis_ai.common.extras import needs_extra

if TYPE_CHECKING:
    from osmosis_ai.rollout.server.app import create_rollout_server
    from osmosis_ai.rollout.server.callbacks.auth import ControllerAuth

__all__ = ["ControllerAuth", "create_rollout_server"]


def __getattr__(name: str) -> Any:
    if name == "ControllerAuth":
        from osmosis_ai.rollout.server.callbacks.auth import ControllerAuth

        return ControllerAuth
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs_extra("server", "create_rollout_server", "fastapi", "starlette", "aiohttp"):
        import osmosis_ai.gateway.gateway  # noqa: F401 (here, not when the server starts)
        from osmosis_ai.rollout.server.app import create_rollout_server

        return create_rollout_server


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
