"""All checks in the order in which one needs the other."""

import asyncio
from importlib.util import find_spec

from osmosis_ai.cli.doctor import engine, machine, skypilot
from osmosis_ai.cli.doctor.findings import Finding, fail

_PACKAGES = ("harbor", "docker", "aiohttp", "platformdirs", "tomlkit", "yaml")


def examine() -> list[Finding]:
    """Run every check that can be run; without the extra for sandboxes that is the first few."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        return [
            machine.interpreter(),
            fail(
                "packages",
                f"{', '.join(missing)} not installed: HarborBackend cannot be used",
                'pip install "osmosis-ai[harbor]"',
            ),
        ]
    return [
        machine.interpreter(),
        machine.packages(),
        machine.uv(),
        machine.patchelf(),
        *asyncio.run(engine.examine_engine()),
        *skypilot.skypilot(),
        machine.runtime_cache(),
        *machine.disks(),
    ]
