"""Callers that each make one call after the other.

Every line on standard input is a load as JSON: ``targets`` (``url``, ``token``),
``callers``, ``model``, ``stream``, ``seconds``, ``spread_sec``, ``warm_up``. The answer
has medians and a rate.
"""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from benchmarks.model_path.process import announce, say

_PROMPT = "Describe a route through the city. " * 40


@dataclass
class Tally:
    """What the callers saw, in seconds."""

    totals: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    failures: int = 0
    last_failure: str = ""


async def caller(
    session: aiohttp.ClientSession, load: dict[str, Any], number: int, until: float, tally: Tally
) -> None:
    """Call until the time is over."""
    target = load["targets"][number % len(load["targets"])]
    body = {
        "model": load["model"],
        "messages": [{"role": "user", "content": _PROMPT}],
        "stream": load["stream"],
    }
    headers = {"Authorization": f"Bearer {target['token']}"}
    # A fleet of callers does not start in the same instant.
    await asyncio.sleep(load["spread_sec"] * number / load["callers"])
    counted = not load["warm_up"]
    while time.perf_counter() < until:
        began = time.perf_counter()
        try:
            first = await call(session, f"{target['url']}/chat/completions", body, headers)
        except (aiohttp.ClientError, TimeoutError, RuntimeError) as exc:
            tally.failures += 1
            tally.last_failure = repr(exc)
            await asyncio.sleep(0.05)
            continue
        if counted:
            tally.totals.append(time.perf_counter() - began)
            tally.firsts.append(first - began)
        # The first call opened the connection.
        counted = True


async def call(
    session: aiohttp.ClientSession, url: str, body: dict[str, Any], headers: dict[str, str]
) -> float:
    """Make one call, read all of its answer, return when the first bytes came."""
    async with session.post(url, json=body, headers=headers) as answer:
        first, last = 0.0, b""
        async for data in answer.content.iter_any():
            first = first or time.perf_counter()
            last = (last + data)[-64:]
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {last!r}")
        if body["stream"] and b"[DONE]" not in last:
            raise RuntimeError(f"the stream broke off: {last!r}")
    return first


async def run(load: dict[str, Any]) -> dict[str, Any]:
    """Put on a load and say how it went."""
    tally = Tally()
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    began, cpu = time.perf_counter(), time.process_time()
    until = began + load["seconds"] + load["spread_sec"]
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        asyncio.TaskGroup() as group,
    ):
        for number in range(load["callers"]):
            group.create_task(caller(session, load, number, until, tally))
    elapsed = time.perf_counter() - began
    totals, firsts = sorted(tally.totals), sorted(tally.firsts)
    if not totals:
        raise RuntimeError(f"no call succeeded: {tally.last_failure}")
    return {
        "calls": len(totals),
        "per_sec": len(totals) / elapsed,
        "median_ms": totals[len(totals) // 2] * 1000,
        "p95_ms": totals[int(len(totals) * 0.95)] * 1000,
        "first_ms": firsts[len(firsts) // 2] * 1000,
        "failures": tally.failures,
        "last_failure": tally.last_failure,
        "cpu_sec": time.process_time() - cpu,
    }


async def serve() -> None:
    """Put on loads until standard input ends."""
    async for line in announce({}):
        say(await run(json.loads(line)))


if __name__ == "__main__":
    asyncio.run(serve())
