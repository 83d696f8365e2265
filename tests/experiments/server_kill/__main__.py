"""Kill a rollout server over and over under load, and show that nothing is lost or doubled.

    python -m tests.experiments.server_kill --kills 200 [--backend harbor]

A server process with its SQLite store and a backend of short rollouts is killed
with SIGKILL while callers of both protocols submit, poll and read again, and a
trainer takes callbacks and is itself slow, failing or gone at times. The kills
follow, in turn, the moments named in the report, and fall within ten
milliseconds after them. Ends with exit code 1 when anything that must hold did
not: every admitted rollout has exactly one terminal result, every published one
is read again with the very same bytes, a rollout that asked to fail on a restart
never runs twice and one that asked to run again succeeds, all callbacks of one
kind of a rollout have the very same bytes and agree with its result, no sandbox
remains, and SQLite finds its file sound.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.machine import describe
from tests.experiments.server_kill.experiment import Plan, Report, experiment

_SHOWN = 20


def show(report: Report) -> None:
    """Print what happened."""
    kills = sum(report.killed_at.values())
    print(f"{kills} kills in {report.seconds:.0f} s, {report.rollouts} rollouts")
    print("killed at: " + ", ".join(f"{n} x {what}" for what, n in report.killed_at.items()))
    print(
        "rollouts where a kill found them: "
        + ", ".join(f"{n} {where}" for where, n in sorted(report.caught.items()))
    )
    print("endings: " + ", ".join(f"{n} {how}" for how, n in report.endings.items()))
    print(
        f"{report.reads} results read again, {report.replays} admissions replayed, "
        f"{report.callbacks} callbacks, {report.repeated} of them sent more than once"
    )
    if report.starts:
        print(f"a start takes {statistics.median(report.starts):.2f} s")
    print(f"broken promises: {len(report.problems)}")
    for problem in report.problems[:_SHOWN]:
        print(f"  {problem}")


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--callers", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=["local", "harbor"], default="local")
    parser.add_argument("--keep", type=Path, help="keep the server's files in this directory")
    args = parser.parse_args()
    print("\n".join(describe("osmosis-ai", "sqlalchemy", "uvicorn")), end="\n\n")
    plan = Plan(args.kills, args.backend, args.callers, args.seed)
    if args.backend == "harbor":  # a rollout takes a second or two
        plan = replace(plan, uptime_sec=(0.5, 4.0), moment_sec=15.0)
    with tempfile.TemporaryDirectory(prefix="osmosis-kill-") as scratch:
        directory = args.keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(experiment(plan, directory))
    show(report)
    sys.exit(bool(report.problems))


if __name__ == "__main__":
    main()
