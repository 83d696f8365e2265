"""Resolving the classes and configs that a user passes to a backend, as themselves or by name."""

import inspect
from typing import Any

from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.imports import resolve_object
from osmosis_ai.rollout.types.config import BaseConfig
from osmosis_ai.rollout.workflow import AgentWorkflow


def resolve_workflow(value: type[AgentWorkflow[Any]] | str) -> type[AgentWorkflow[Any]]:
    """Return the workflow class that ``value`` is or names.

    Raises:
        ValueError, ImportError: an import string does not resolve.
        TypeError: it is no concrete subclass of ``AgentWorkflow``.
    """
    found: type[AgentWorkflow[Any]] = _resolve_class(value, AgentWorkflow, "workflow")
    return found


def resolve_grader(value: type[Grader] | str | None) -> type[Grader] | None:
    """Return the grader class that ``value`` is or names; ``None`` for ``None``.

    Raises:
        ValueError, ImportError: an import string does not resolve.
        TypeError: it is no concrete subclass of ``Grader``.
    """
    if value is None:
        return None
    found: type[Grader] = _resolve_class(value, Grader, "grader")
    return found


def _resolve_class(value: object, base: type, argument: str) -> Any:
    found = resolve_object(value) if isinstance(value, str) else value
    if not isinstance(found, type) or not issubclass(found, base):
        raise TypeError(
            f"{argument}={value!r} must be a subclass of {base.__name__} or the 'module:attr' "
            f"string of one, not {found!r}"
        )
    if inspect.isabstract(found):
        missing = sorted(getattr(found, "__abstractmethods__", ()))
        raise TypeError(f"{argument}={found.__name__} does not implement {', '.join(missing)}")
    return found


def resolve_config[C: BaseConfig](value: C | str | None, base: type[C], argument: str) -> C | None:
    """Return the config instance that ``value`` is or names, or ``None``.

    Raises:
        ValueError, ImportError: an import string does not resolve.
        TypeError: it is no instance of ``base``.
    """
    if value is None:
        return None
    found = resolve_object(value) if isinstance(value, str) else value
    if not isinstance(found, base):
        raise TypeError(
            f"{argument}={value!r} must be an instance of {base.__name__} or the 'module:attr' "
            f"string of one, not {found!r}"
        )
    return found
