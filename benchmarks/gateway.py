"""What the model gateway costs a call, against no gateway and against the LiteLLM proxy.

    python -m benchmarks.gateway [--seconds S] [--rounds N] [--no-litellm]

Four processes, as in a deployment: the model (a small aiohttp server), the gateway (one
open rollout per caller, calls recorded to disk), the peer, and the callers. Latency is
measured with a model that takes a second per call, and two seconds for 256 callers, which
is short for a model; rates with one that answers at once. Subjects take turns, so that
noise meets all of them; the smallest median of the rounds counts. The lag of an event loop
that does nothing is measured beside the gateway's, because a busy machine delays both.
LiteLLM is installed into a venv of its own.
"""

import argparse
import asyncio
import json
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.model_path import litellm_process
from benchmarks.model_path.process import Child, child
from benchmarks.model_path.shapes import Pace

CALLERS = (1, 32, 256)
PACED = {1: "model-1000", 32: "model-1000", 256: "model-2000"}
AT_ONCE = "model-0"
_PACKAGE = "benchmarks.model_path"


@dataclass(frozen=True)
class Subject:
    """Something to call."""

    name: str
    targets: list[dict[str, str]]


@dataclass(frozen=True)
class Bench:
    """The running processes."""

    subjects: list[Subject]
    callers: Child
    gateway: Child
    idle: Child
    rounds: int
    seconds: float

    async def load(
        self, subject: Subject, model: str, callers: int, stream: bool
    ) -> dict[str, Any]:
        """Put a load on a subject."""
        pace = Pace.of_model(model).total_sec
        load = {
            "targets": subject.targets,
            "callers": callers,
            "model": model,
            "stream": stream,
            "seconds": self.seconds * max(1.0, pace),
            "spread_sec": pace if callers > 1 else 0.0,
            "warm_up": pace > 0,
        }
        return await self.callers.ask(json.dumps(load))

    async def lags(self) -> tuple[float, float]:
        """The 99th percentile of the gateway's loop lag and of an idle loop's, since last asked."""
        gateway, idle = await asyncio.gather(self.gateway.ask("lag"), self.idle.ask("lag"))
        return gateway["p99"], idle["p99"]


async def latency(bench: Bench) -> None:
    """Print what each subject adds to a call."""
    print("added latency per call, a model that takes 1 or 2 s; medians in ms")
    for stream in (False, True):
        for callers in CALLERS:
            best: dict[str, dict[str, Any]] = {}
            lag: tuple[float, float] | None = None
            for _ in range(bench.rounds):
                for subject in bench.subjects:
                    await bench.lags()
                    figures = await bench.load(subject, PACED[callers], callers, stream)
                    if subject.name == "gateway":
                        now = await bench.lags()
                        lag = min(lag or now, now)
                    if (
                        subject.name not in best
                        or figures["median_ms"] < best[subject.name]["median_ms"]
                    ):
                        best[subject.name] = figures
            direct = best["direct"]
            print(f"  {'streamed' if stream else 'whole':9}{callers:4} callers", end="")
            print(f"   direct {direct['median_ms']:7.1f}", end="")
            for name, figures in best.items():
                if name == "direct":
                    continue
                added = figures["median_ms"] - direct["median_ms"]
                first = figures["first_ms"] - direct["first_ms"]
                failed = f", {figures['failures']} failed" if figures["failures"] else ""
                print(f"   {name} {added:+.2f}", end="")
                print(f" (first {first:+.2f}{failed})" if stream else failed, end="")
            if lag is not None:
                print(f"   loop lag p99 {lag[0]:.1f}, of an idle loop {lag[1]:.1f}", end="")
            print(flush=True)


async def rate(bench: Bench) -> None:
    """Print how many calls per second each subject passes on."""
    print("\ncalls per second, a model that answers at once")
    for stream in (False, True):
        for callers in (32, 256):
            best: dict[str, float] = {}
            for _ in range(bench.rounds):
                for subject in bench.subjects:
                    figures = await bench.load(subject, AT_ONCE, callers, stream)
                    best[subject.name] = max(best.get(subject.name, 0.0), figures["per_sec"])
            print(f"  {'streamed' if stream else 'whole':9}{callers:4} callers", end="")
            for name, per_sec in best.items():
                print(f"   {name} {per_sec:7.0f}", end="")
            if "litellm" in best:
                print(f"   ratio {best['gateway'] / best['litellm']:.1f}", end="")
            print(flush=True)


async def run(arguments: argparse.Namespace) -> None:
    """Start the processes and measure."""
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(child(f"{_PACKAGE}.model_process"))
        url = model.hello["url"]
        gateway = await stack.enter_async_context(
            child(f"{_PACKAGE}.gateway_process", url, str(max(CALLERS)))
        )
        idle = await stack.enter_async_context(child(f"{_PACKAGE}.lag"))
        callers = await stack.enter_async_context(child(f"{_PACKAGE}.callers_process"))
        subjects = [
            Subject("direct", [{"url": url, "token": "none"}]),
            Subject("gateway", gateway.hello["targets"]),
        ]
        if not arguments.no_litellm:
            directory = litellm_process.environment(Path(arguments.litellm_venv))
            proxy = await stack.enter_async_context(
                litellm_process.proxy(directory, url, [*set(PACED.values()), AT_ONCE])
            )
            print(f"LiteLLM proxy {proxy.version}, one worker, as the gateway has one\n")
            subjects.append(Subject("litellm", [{"url": proxy.url, "token": litellm_process.KEY}]))
        bench = Bench(subjects, callers, gateway, idle, arguments.rounds, arguments.seconds)
        for subject in subjects:
            await replace(bench, seconds=1.0).load(subject, AT_ONCE, 4, False)
        if "latency" in arguments.only:
            await latency(bench)
        if "rate" in arguments.only:
            await rate(bench)


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="per load")
    parser.add_argument("--rounds", type=int, default=2, help="loads of each kind, in turn")
    parser.add_argument("--no-litellm", action="store_true", help="leave the peer out")
    parser.add_argument("--only", nargs="+", default=["latency", "rate"])
    parser.add_argument(
        "--litellm-venv",
        default=str(Path(tempfile.gettempdir()) / "osmosis-benchmark-litellm"),
        help="where LiteLLM is installed, once",
    )
    arguments = parser.parse_args()
    print("\n".join(describe("aiohttp", "httpx")), flush=True)
    asyncio.run(run(arguments))


if __name__ == "__main__":
    main()
