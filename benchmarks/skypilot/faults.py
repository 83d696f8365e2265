"""Many trials on the double, faults in a tenth of them, and an engine that is killed meanwhile.

    python -m benchmarks.skypilot.faults [--rollouts 1000] [--kills 10] [--at-once 4]

Ends with an error unless every rollout has exactly one result, every fault is reported with its
phase and category, every other rollout succeeded, and the reaper leaves no sandbox. Needs the
environment that scripts/test-skypilot.sh makes.
"""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.skypilot.plan import BUILD_SEC, hit_of, rollout_id
from benchmarks.skypilot.setting import NOOP, ROOT, TEMPLATE, setting
from benchmarks.skypilot.worker import done
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV

_LOOK_SEC = 0.25


def run_engines(arguments: list[str], journal: Path, rollouts: int, kills: int) -> list[int]:
    """Run engines one after the other, and kill ``kills`` of them; returns results at each kill."""
    killed: list[int] = []
    each = rollouts / (kills + 1)
    while True:
        engine = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.skypilot.worker", *arguments], cwd=ROOT
        )
        while engine.poll() is None:
            time.sleep(_LOOK_SEC)
            finished = len(done(journal))
            if len(killed) < kills and finished >= each * (len(killed) + 1):
                engine.send_signal(signal.SIGKILL)
                engine.wait()
                killed.append(finished)
        if engine.returncode == -signal.SIGKILL:
            continue
        if engine.returncode != 0:
            raise SystemExit(f"an engine ended with exit code {engine.returncode}")
        return killed


def problems(results: dict[str, dict[str, Any]], rollouts: int) -> list[str]:
    """What is wrong with the results."""
    found = [f"{rollout_id(n)}: no result" for n in range(rollouts) if rollout_id(n) not in results]
    for number in range(rollouts):
        result, hit = results.get(rollout_id(number)), hit_of(number)
        if result is None:
            continue
        if hit is None or hit.category is None:
            right = result["status"] == "success" and result["reward"] == 1.0
        else:
            right = (result["phase"], result["category"]) == (hit.phase, hit.category)
            right = right and result["status"] == "failure"
        if hit is not None and hit.note:
            right = right and any(hit.note in note for note in result["notes"])
        if not right:
            found.append(f"{rollout_id(number)}: hit by {hit}, and its result is {result}")
    return found


def left(instances: set[str]) -> list[str]:
    """Sandboxes of these engines that still run."""
    from sky_sandbox_double import sdk

    from harbor_backend.places.skypilot.names import instance_of

    return [box.name for box in sdk.ls() if instance_of(box.name) in instances]


def main() -> None:
    """Run, check, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rollouts", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=4)
    args = parser.parse_args()
    print("\n".join(describe("harbor", "skypilot")), end="\n\n", flush=True)
    began = time.monotonic()
    with (
        setting(ARTIFACT_ROOT_ENV) as registry,
        tempfile.TemporaryDirectory(prefix="osmosis-faults-") as scratch,
    ):
        task, journal = Path(scratch, "task"), Path(scratch, "journal.jsonl")
        shutil.copytree(TEMPLATE, task)
        with (task / "task.toml").open("a") as file:
            file.write(f"\n[environment]\nbuild_timeout_sec = {BUILD_SEC}\n")
        arguments = [registry, str(task), str(journal), str(args.rollouts), str(args.at_once)]
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(NOOP)])
        killed = run_engines(arguments, journal, args.rollouts, args.kills)
        results = done(journal)
        instances = {str(result["instance"]) for result in results.values()}
        before = left(instances)
        from sky_sandbox_double import sdk

        from harbor_backend.places.skypilot.reaper import reap_sandboxes

        asyncio.run(reap_sandboxes(sdk))
        after = left(instances)
    wrong = problems(results, args.rollouts)
    faults = Counter(hit.fault for n in range(args.rollouts) if (hit := hit_of(n)))
    print(
        f"{len(results)} results in {time.monotonic() - began:.0f}s, {len(killed)} engines killed"
    )
    print(f"faults: {', '.join(f'{name} {count}' for name, count in sorted(faults.items()))}")
    print(f"sandboxes before the last reaping {len(before)}, after it {len(after)}")
    print(f"wrong: {len(wrong)}", *wrong[:20], sep="\n  ")
    sys.exit(1 if wrong or after else 0)


if __name__ == "__main__":
    main()
