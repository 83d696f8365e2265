"""What honest callers of a rollout server notice while others misbehave.

    python -m tests.experiments.server_hostile [--seconds 20] [--rounds 2] [--attacks NAME ...]

One server process with its SQLite store on disk; one process of attackers; here, honest callers
that have rollouts admitted, wait for results, read them again, and are called back. Their
waits are measured with and without each attack, in turn within one run, and then with all
attacks at once. Exits 1 if a median grows by more than a quarter.
"""

import argparse
import asyncio
import os
import resource
import sys
import tempfile
from contextlib import AsyncExitStack

from benchmarks.machine import describe
from benchmarks.model_path.process import child
from tests.experiments.server_hostile.attacks import ATTACKS
from tests.experiments.server_hostile.honest import honest_callers
from tests.experiments.server_hostile.phases import Comparison, Stage

_PACKAGE = "tests.experiments.server_hostile"
_ALLOWED = 1.25
_WARM_UP_SEC = 3.0
_WAITS = {
    "admission": "admission",
    "result": "result after its end",
    "reading": "result read again",
    "callback": "callback after the end",
}


async def run(arguments: argparse.Namespace) -> bool:
    """Measure, print, and tell whether nothing slowed down too much."""
    held = True
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(child(f"{_PACKAGE}.server_process"))
        port = server.hello["port"]
        attackers = await stack.enter_async_context(
            child(f"{_PACKAGE}.attack_process", str(port), str(arguments.scale))
        )
        honest = await stack.enter_async_context(honest_callers(port))
        stage = Stage(server, attackers, honest, port, arguments.seconds, arguments.lead)
        await honest.measure(_WARM_UP_SEC)
        together = [list(arguments.attacks)] if len(arguments.attacks) > 1 else []
        for attacks in [[name] for name in arguments.attacks] + together:
            found = await stage.compare(attacks, arguments.rounds)
            show("all at once" if len(attacks) > 1 else attacks[0], found)
            held = held and max(found.ratios().values()) <= _ALLOWED
    print("nothing slowed down by more than a quarter" if held else "TOO SLOW under attack")
    return held


def show(name: str, found: Comparison) -> None:
    """Print a block per attack."""
    quiet, hostile, ratios = found.quiet.medians(), found.hostile.medians(), found.ratios()
    print(
        f"\n{name}   (loop lag p99 {found.lags[0]:.1f} -> {found.lags[1]:.1f} ms, server's "
        f"processor {found.busy[0]:.0%} -> {found.busy[1]:.0%})"
    )
    for wait, title in _WAITS.items():
        count = len(getattr(found.hostile, wait))
        print(
            f"  {title:24} median {quiet[wait]:7.2f} -> {hostile[wait]:7.2f} ms   "
            f"x {ratios[wait]:.2f}   ({count} times)"
        )
    answers = ", ".join(f"{count} x {answer}" for answer, count in sorted(found.answers.items()))
    print(f"  attackers: {answers}", flush=True)


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="per measurement")
    parser.add_argument("--lead", type=float, default=15.0, help="attacked so long before it")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="how hard to attack")
    parser.add_argument("--attacks", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    packages = ("osmosis-ai", "fastapi", "uvicorn", "httpx", "sqlalchemy")
    print("\n".join(describe(*packages)), flush=True)
    with tempfile.TemporaryDirectory(prefix="osmosis-hostile-") as root:
        os.environ["_OSMOSIS_ROLLOUT_ARTIFACT_ROOT"] = root
        held = asyncio.run(run(arguments))
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
