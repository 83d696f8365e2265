"""Processor seconds that importing costs, in a fresh process with compiled bytecode.

    python -m benchmarks.import_cost [--runs N]

Each subject runs in processes of its own and reports its own processor time.
A first, uncounted run writes the bytecode (to a directory of this run), so it
does not matter how the packages were installed. The integrations' figures
contain everything below them, and their limit is 1.5 s. The last line shows what
a process of one rollout saves that imports with the garbage collector off and
freezes what it imported.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import describe

ROOT = Path(__file__).parents[1]
LIMIT_SEC = 1.5

_BIND = """
import asyncio
from osmosis_ai.rollout import RolloutContext

async def bind():
    with RolloutContext(chat_completions_url="http://127.0.0.1:9/v1"):
        {agent}

asyncio.run(bind())
"""
_STRANDS = """
from osmosis_ai.rollout.integrations.agents.strands import (
    OsmosisRolloutModel, OsmosisStrandsAgent
)
"""
_OPENAI_AGENTS = """
from osmosis_ai.rollout.integrations.agents.openai_agents import (
    OsmosisAgent, OsmosisMemorySession, OsmosisRolloutModel
)
"""
_STRANDS_AGENT = "OsmosisStrandsAgent(model=OsmosisRolloutModel()).model._custom_client.chat"
_OPENAI_AGENT = "OsmosisMemorySession(); OsmosisAgent(name='a', model=OsmosisRolloutModel())"


@dataclass(frozen=True)
class Subject:
    """Code whose cost is measured, and what it must not load."""

    title: str
    code: str
    limited: bool = False


SUBJECTS = (
    Subject("pydantic", "import pydantic"),
    Subject("openai", "import openai"),
    Subject("SDK core (osmosis_ai.rollout)", "import osmosis_ai.rollout"),
    Subject("strands alone", "import strands"),
    Subject("Strands integration", _STRANDS),
    Subject(
        "Strands integration, first agent bound",
        _STRANDS + _BIND.format(agent=_STRANDS_AGENT),
        limited=True,
    ),
    Subject("mcp alone (agents loads it)", "import mcp"),
    Subject("agents alone", "import agents"),
    Subject("OpenAI Agents integration", _OPENAI_AGENTS),
    Subject(
        "OpenAI Agents integration, first agent bound",
        _OPENAI_AGENTS + _BIND.format(agent=_OPENAI_AGENT),
        limited=True,
    ),
    Subject(
        "the same, imports in a frozen heap",
        "import gc\ngc.disable()"
        + _OPENAI_AGENTS
        + "gc.freeze()\ngc.enable()"
        + _BIND.format(agent=_OPENAI_AGENT),
    ),
)


def measure(subject: Subject, runs: int, bytecode: str) -> list[float]:
    """Return the processor seconds of each counted run."""
    return [_run(subject.code, bytecode) for _ in range(runs + 1)][1:]


def _run(code: str, bytecode: str) -> float:
    # The interpreter's own start is not counted.
    program = (
        "import sys, time\nbegan = time.process_time()\n"
        + code
        + "\nspent = time.process_time() - began\n"
        + "assert 'litellm' not in sys.modules\nprint(spent)\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**environment, "PYTHONPYCACHEPREFIX": bytecode},
    )
    return float(finished.stdout.split()[-1])


def main() -> None:
    """Measure every subject and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    packages = ("pydantic", "openai", "strands-agents", "openai-agents", "mcp")
    print("\n".join(describe(*packages)), end="\n\n")
    print(f"CPU seconds, median of {args.runs} (least, most)")
    with tempfile.TemporaryDirectory(prefix="osmosis-benchmark-") as bytecode:
        for subject in SUBJECTS:
            spent = measure(subject, args.runs, bytecode)
            median = statistics.median(spent)
            verdict = ""
            if subject.limited:
                verdict = f"  limit {LIMIT_SEC}: {'kept' if median < LIMIT_SEC else 'EXCEEDED'}"
            print(
                f"  {subject.title:46} {median:5.2f}  ({min(spent):.2f}, {max(spent):.2f}){verdict}"
            )


if __name__ == "__main__":
    main()
