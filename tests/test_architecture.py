"""Who may import whom (docs/development.md): arrows go one way, and no files form a circle."""

import sys

import pytest

from tests.import_graph import Imports, circles, imports, reachable, within

COMMON = "osmosis_ai.common"
CORE = "osmosis_ai.rollout"
CONTAINER = "osmosis_ai.rollout.container"
CLIENT = "osmosis_ai.rollout.client"
BACKEND = "osmosis_ai.rollout.backend"
RUN = "osmosis_ai.rollout.run"
SERVER = "osmosis_ai.rollout.server"
GATEWAY = "osmosis_ai.gateway"
TELEMETRY = "osmosis_ai.telemetry"
CLI = "osmosis_ai.cli"
PACKAGING = "osmosis_ai.packaging"
VERSION = "osmosis_ai"
LOCAL = "local_backend"
HARBOR = "harbor_backend"
IMAGES = "sandbox_images"

ARROWS: dict[str, set[str]] = {
    VERSION: set(),
    COMMON: set(),
    IMAGES: set(),
    CORE: {COMMON, VERSION},
    CONTAINER: {COMMON, CORE},
    CLIENT: {COMMON, CORE},
    GATEWAY: {COMMON, CORE},
    TELEMETRY: {COMMON, CORE},
    BACKEND: {COMMON, CORE, GATEWAY},
    RUN: {COMMON, CORE, GATEWAY, BACKEND},
    LOCAL: {COMMON, CORE, BACKEND},
    HARBOR: {VERSION, COMMON, CORE, CONTAINER, GATEWAY, BACKEND, IMAGES},
    SERVER: {COMMON, CORE, GATEWAY, TELEMETRY, BACKEND, RUN},
    PACKAGING: {HARBOR},
    CLI: {VERSION, COMMON, CORE, GATEWAY, BACKEND, RUN, IMAGES, HARBOR},
}
"""What each part may import of the others. A part is a package without the parts inside it."""

RE_EXPORTS = {
    ("osmosis_ai.rollout", "osmosis_ai.rollout.backend.base"),
    ("osmosis_ai.rollout", "local_backend"),
    ("osmosis_ai.rollout.backend", "local_backend"),
    ("osmosis_ai.rollout.backend.local", "local_backend"),
    ("osmosis_ai.rollout.backend.harbor", "harbor_backend"),
}
"""The documented import paths of backends. All but the contract in ``base`` are lazy."""

TYPES_ONLY = {("osmosis_ai.rollout.context", "osmosis_ai.gateway")}
"""What the core names for type checkers: a rollout's context carries the endpoint it was given."""

BASE_INSTALL = {"anyio", "httpx", "pydantic", "pydantic_core", "tenacity"}
NOT_IN_A_SANDBOX = {"aiohttp", "docker", "fastapi", "harbor", "starlette", "uvicorn"}


def graph() -> dict[str, frozenset[str]]:
    return {module: found.ours for module, found in imports().items()}


def part_of(module: str) -> str:
    """The innermost part that a module belongs to."""
    return max((part for part in ARROWS if within(module, part)), key=len)


def top_level(found: Imports) -> set[str]:
    return {name.partition(".")[0] for name in found.others}


def test_no_files_form_a_circle() -> None:
    assert circles(graph()) == []


@pytest.mark.parametrize("part", ARROWS)
def test_arrows_go_one_way(part: str) -> None:
    wrong = [
        (module, other)
        for module, others in graph().items()
        if part_of(module) == part
        for other in others
        if part_of(other) not in {part, *ARROWS[part]}
        and (module, other) not in RE_EXPORTS | TYPES_ONLY
    ]
    assert wrong == []


def test_what_is_for_types_only_is_not_imported() -> None:
    run = {(module, other) for module, found in imports().items() for other in found.at_run_time}
    assert run & TYPES_ONLY == set()


def test_parts_form_no_circle_either() -> None:
    assert circles({part: frozenset(others) for part, others in ARROWS.items()}) == []


def test_the_ground_floor_needs_the_base_install_only() -> None:
    allowed = BASE_INSTALL | sys.stdlib_module_names
    for module, found in imports().items():
        if within(module, COMMON):
            assert top_level(found) <= allowed, module


def test_what_runs_in_a_sandbox_reaches_no_host_only_code() -> None:
    run = {
        module: frozenset(o for o in found.at_run_time if (module, o) not in RE_EXPORTS)
        for module, found in imports().items()
    }
    for module in run:
        if not within(module, CONTAINER):
            continue
        for reached in (module, *reachable(run, module)):
            assert part_of(reached) in {COMMON, CORE, CONTAINER, VERSION}, (module, reached)
            assert top_level(imports()[reached]).isdisjoint(NOT_IN_A_SANDBOX), (module, reached)


def test_the_cli_knows_harbor_backend_by_its_public_names_and_admin_only() -> None:
    allowed = {HARBOR, "harbor_backend.admin"}
    wrong = [
        (module, other)
        for module, others in graph().items()
        if within(module, CLI)
        for other in others
        if within(other, HARBOR) and other not in allowed
    ]
    assert wrong == []
