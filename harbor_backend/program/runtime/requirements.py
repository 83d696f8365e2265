"""What a runtime installs, and in which versions."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import re
import sys
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harbor_backend.program.bundle.inspection import is_extra_gated
from harbor_backend.program.bundle.project import SDK_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

logger = logging.getLogger(__name__)

# The SDK's own requirements for a terminal, and its extras for the host's side of a rollout.
HOST_ONLY_DEPENDENCIES = frozenset({"rich", "typer"})
HOST_ONLY_EXTRAS = frozenset({"eval", "gateway", "harbor", "litellm", "skypilot"})


def sandbox_requirements(
    wheel_requirements: Iterable[str], sdk_requires: Sequence[str], sdk_version: str
) -> list[str]:
    """The requirements to install: the SDK's base, the bundle's, and those of the SDK extras named.

    A requirement on the SDK is never installed itself: the sandbox runs the host's SDK, and a
    version range that excludes it is logged. Extras for the host's side are left out. Sorted,
    without duplicates.
    """
    wanted: set[str] = set()
    extras: set[str] = set()
    for text in wheel_requirements:
        requirement = Requirement(text)
        if not _is_sdk(requirement):
            wanted.add(str(requirement))
        elif requirement.marker is None or requirement.marker.evaluate():
            extras |= requirement.extras
            if not requirement.specifier.contains(sdk_version, prereleases=True):
                logger.warning("the bundle wants %s; it gets the host's %s", text, sdk_version)
    for text in _sdk_base(sdk_requires) + _sdk_extras(sdk_requires, extras):
        wanted.add(text)
    return sorted(wanted)


def _is_sdk(requirement: Requirement) -> bool:
    return canonicalize_name(requirement.name) == SDK_NAME


def _sdk_base(sdk_requires: Sequence[str]) -> list[str]:
    plain = (Requirement(text) for text in sdk_requires if not is_extra_gated(text))
    return [str(r) for r in plain if canonicalize_name(r.name) not in HOST_ONLY_DEPENDENCIES]


def _sdk_extras(sdk_requires: Sequence[str], extras: set[str]) -> list[str]:
    gated = [Requirement(text) for text in sdk_requires if is_extra_gated(text)]
    found: list[str] = []
    pending, seen = sorted(extras), set(HOST_ONLY_EXTRAS)
    while pending:
        extra = canonicalize_name(pending.pop())
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in gated:
            marker = requirement.marker
            if marker is None or not marker.evaluate({"extra": extra}):
                continue
            if _is_sdk(requirement):
                pending += requirement.extras
                continue
            plain = Requirement(str(requirement))
            plain.marker = None
            found.append(str(plain))
    return found


def installed_versions() -> dict[str, str]:
    """The version of every distribution on the host's import path, by normalised name."""
    versions: dict[str, str] = {}
    for folder in sys.path:
        if not os.path.isdir(folder):
            continue
        for name in os.listdir(folder):
            match = re.fullmatch(r"([\w.]+)-([^-]+)\.dist-info", name)
            if match:
                versions.setdefault(canonicalize_name(match[1]), match[2])
    return versions


def host_constraints(requirements: Iterable[str], versions: dict[str, str]) -> list[str]:
    """ "name==version" for each distribution that the requirements lead to on the host.

    Only those: a tool that is upgraded on the host must not make every runtime anew.
    """
    pending = [(Requirement(text), "") for text in requirements]
    seen: set[tuple[str, str]] = set()
    while pending:
        requirement, extra = pending.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in ("", *requirement.extras):
            if name not in versions or (name, wanted) in seen:
                continue
            seen.add((name, wanted))
            pending += [(needed, wanted) for needed in _requires(name, versions[name])]
    names = {name for name, _ in seen} - {SDK_NAME}
    return sorted(f"{name}=={versions[name]}" for name in names)


_parsed: dict[tuple[str, str], list[Requirement]] = {}


def _requires(name: str, version: str) -> list[Requirement]:
    """A distribution's requirements, parsed once per version: this runs for every runtime."""
    if (name, version) not in _parsed:
        try:
            texts = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            texts = []
        _parsed[name, version] = [Requirement(text) for text in texts]
    return _parsed[name, version]
