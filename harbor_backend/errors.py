"""What can go wrong in a trial, and whose fault it is: decided where it is known."""

from typing import ClassVar

from osmosis_ai.rollout.types.status import RolloutErrorCategory

_categories: dict[str, RolloutErrorCategory] = {}


class HarborBackendError(Exception):
    """The base of what this package raises.

    ``category`` says whose fault an error is, and ``phase`` in which phase of a
    trial it belongs (``None``: in the one that it ended). Harbor reports an
    exception by the name of its class alone, so no two classes share a name.
    """

    category: ClassVar[RolloutErrorCategory] = RolloutErrorCategory.INFRASTRUCTURE_ERROR
    phase: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__name__ in _categories:
            raise TypeError(f"two exceptions are called {cls.__name__}")
        _categories[cls.__name__] = cls.category


def category_named(exception_type: str) -> RolloutErrorCategory | None:
    """The category of one of our exceptions by its class's name; ``None`` for another's."""
    return _categories.get(exception_type)


class SandboxLostError(HarborBackendError, RuntimeError):
    """The sandbox ended, or broke the protocol, while something was asked of it."""


class SandboxStartError(HarborBackendError, RuntimeError):
    """Something that a sandbox needs did not come in time; the text says what, and how long."""

    phase = "environment_setup"


class ModelRouteError(HarborBackendError, RuntimeError):
    """The way from a sandbox to its model cannot be opened."""


class ModelUnreachableError(ModelRouteError):
    """The sandbox does not reach the gateway; the text names the hop that failed."""


class WorkflowFailedError(HarborBackendError):
    """Ends a trial whose workflow failed: there is nothing to verify, and its result says why."""

    category = RolloutErrorCategory.AGENT_ERROR
    phase = "agent"
