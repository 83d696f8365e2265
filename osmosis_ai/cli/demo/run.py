"""Running the demo from end to end."""

import asyncio
import contextlib
import logging
import uuid

from rich.console import Console

from osmosis_ai.cli.demo.jobs import Job, harbor_jobs, local_job, run_job
from osmosis_ai.cli.demo.report import as_json, failures, progress, saved, table, verdicts
from osmosis_ai.cli.output import print_json, result_console, talk_console
from osmosis_ai.common.texts import printable
from osmosis_ai.rollout.artifacts import artifact_root


def run_demo(*, rollouts: int, n_concurrent: int, local_only: bool, json_output: bool) -> int:
    """Run it and print the result; returns the exit code, 0 when everything holds."""
    console = talk_console() if json_output else result_console()
    logging.disable(logging.WARNING)  # the table says what failed
    without_docker = None if local_only else asyncio.run(_why_no_docker())
    run = uuid.uuid4().hex[:6]
    jobs = [local_job(rollouts, run, n_concurrent)]
    if not local_only and without_docker is None:
        jobs += harbor_jobs(rollouts, run, n_concurrent)
    asyncio.run(_run(console, jobs))
    if json_output:
        print_json(as_json(jobs))
    else:
        _print(console, jobs)
    if without_docker is not None:
        console.print("Left out: everything in containers.", style="yellow", end=" ")
        console.print(without_docker)
    return 0 if all(holds for holds, _ in verdicts(jobs)) else 1


async def _run(console: Console, jobs: list[Job]) -> None:
    with progress(console, jobs) as advance:
        for job in jobs:
            await run_job(job, advance)


async def _why_no_docker() -> str | None:
    """Return what to install for the container half, or ``None`` when all is there."""
    try:
        from harbor_backend.admin import Engine, EngineError
    except ModuleNotFoundError as exc:
        return (
            f"Install the Harbor backend: pip install 'osmosis-ai[harbor]' ({exc.name} is missing)"
        )
    try:
        engine = Engine()
    except EngineError as exc:
        return str(exc)
    try:
        await engine.call("GET", "/version")
    except EngineError as exc:
        return f"{exc}; on Debian: apt-get install docker.io, then run the demo again"
    finally:
        with contextlib.suppress(EngineError):
            await engine.aclose()
    return None


def _print(console: Console, jobs: list[Job]) -> None:
    console.print(table(jobs))
    for holds, what in verdicts(jobs):
        console.print("ok" if holds else "NO", style="green" if holds else "red", end="  ")
        console.print(what)
    for line in failures(jobs):
        console.print("failed", style="red", end=" ")
        console.print(printable(line))
    console.print(f"Saved under {artifact_root()}, for example:")
    for line in saved(jobs):
        console.print(f"  {line}", soft_wrap=True)
