"""What a benchmark ran on, and how much processor time went by."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path


def describe(*packages: str) -> list[str]:
    """Lines that say which machine and which versions figures belong to."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    engine = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        f"machine: {os.cpu_count()} x {model}, {memory:.0f} GiB, kernel {platform.release()}",
        f"versions: Python {platform.python_version()}, Docker engine {engine or 'none'}, "
        + ", ".join(f"{package} {version(package)}" for package in packages),
        f"load before: {', '.join(f'{value:.2f}' for value in os.getloadavg())} (1, 5, 15 min)",
    ]


def busy_seconds() -> float:
    """Processor seconds that the whole machine has worked since it started."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq = fields[:7]
    ticks: int = user + nice + system + irq + softirq
    return ticks / os.sysconf("SC_CLK_TCK")
