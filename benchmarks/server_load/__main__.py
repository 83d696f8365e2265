"""Thousands of rollouts in flight on one server, each polled: ours, then the vendor's.

    python -m benchmarks.server_load [--rollouts 5000] [--rounds 2] [--no-vendor]

The vendor's published package is installed from the package index into a virtual
environment of its own. Both run the same simulated backend under uvicorn and are
asked by the same callers, in turn. Ours writes every admission and every result
to its SQLite store before it answers; the vendor's keeps them in memory.
"""

import argparse
import asyncio
import resource
import socket
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import describe
from benchmarks.server_load import vendor
from benchmarks.server_load.load import Figures, Load, measure, percentile

type Row = tuple[str, Callable[[Figures], float], str]

_ROWS: tuple[Row, ...] = (
    ("admissions per second", lambda f: f.admission_per_sec, "{:.0f}"),
    ("admission latency p50, ms", lambda f: percentile(f.admission, 0.5) * 1000, "{:.1f}"),
    ("admission latency p99, ms", lambda f: percentile(f.admission, 0.99) * 1000, "{:.1f}"),
    ("poll wake-up, status, p50, ms", lambda f: percentile(f.grading, 0.5) * 1000, "{:.1f}"),
    ("poll wake-up, status, p99, ms", lambda f: percentile(f.grading, 0.99) * 1000, "{:.1f}"),
    ("poll wake-up, result, p50, ms", lambda f: percentile(f.ended, 0.5) * 1000, "{:.1f}"),
    ("poll wake-up, result, p99, ms", lambda f: percentile(f.ended, 0.99) * 1000, "{:.1f}"),
    ("loop lag p99 while admitting, ms", lambda f: f.lag_admitting["p99"], "{:.1f}"),
    ("loop lag p99, all waiting, ms", lambda f: f.lag_idle["p99"], "{:.1f}"),
    ("loop lag p99 while ending, ms", lambda f: f.lag_ending["p99"], "{:.1f}"),
    ("memory per rollout, KiB", lambda f: f.bytes_per_rollout / 1024, "{:.1f}"),
    ("processor seconds", lambda f: f.cpu_sec, "{:.1f}"),
    ("status changes seen", lambda f: float(len(f.grading)), "{:.0f}"),
    ("failed requests and rollouts", lambda f: float(f.failed), "{:.0f}"),
)


def show(figures: dict[str, list[Figures]]) -> None:
    """Print medians, a column per server."""
    print(f"{'':36}" + "".join(f"{name:>12}" for name in figures))
    for title, read, form in _ROWS:
        values = [statistics.median(read(one) for one in rounds) for rounds in figures.values()]
        print(f"{title:36}" + "".join(f"{form.format(value):>12}" for value in values))


def free_port() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rollouts", type=int, default=5000)
    parser.add_argument("--submitters", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=40, help="within which rollouts end")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--no-vendor", action="store_true")
    args = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("\n".join(describe("osmosis-ai", "fastapi", "uvicorn")))
    load = Load(args.rollouts, args.submitters, args.seconds)
    with tempfile.TemporaryDirectory(prefix="osmosis-load-") as scratch:
        servers = {"ours": Path(sys.executable)}
        if not args.no_vendor:
            try:
                servers["vendor's"], version = vendor.install(Path(scratch, "vendor"))
                print(f"vendor's package: osmosis-ai {version}")
            except RuntimeError as exc:
                print(f"the vendor's package cannot be installed here: {exc}")
        figures: dict[str, list[Figures]] = {name: [] for name in servers}
        for number in range(args.rounds):
            for name, python in servers.items():
                directory = Path(scratch, f"{name[:4]}-{number}")
                directory.mkdir()
                figures[name].append(asyncio.run(measure(python, free_port(), load, directory)))
        print(f"\n{load.rollouts} rollouts in flight, median of {args.rounds} round(s)\n")
        show(figures)


if __name__ == "__main__":
    main()
