"""Runs the runner in a process of its own, as a sandbox's supervisor does."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.rollout import ExecutionResult
from osmosis_ai.rollout.container.files import ContainerInput, decode_result, encode

ROOT = Path(__file__).parents[3]

LAUNCH = """
import os, sys
result, artifacts, *paths = sys.argv[1:5]
os.dup2(int(result), 3)
os.close(int(result)) if int(result) != 3 else None
sys.path[:0] = paths
{prelude}
from osmosis_ai.rollout.container import runner
runner.ARTIFACTS_DIR = artifacts
runner.main(sys.argv[5:])
"""


@dataclass
class Ended:
    """How a runner's process ended."""

    code: int
    data: bytes
    stdout: str
    stderr: str
    seconds: float

    @property
    def result(self) -> ExecutionResult:
        """What came out of descriptor 3."""
        return decode_result(self.data).result()


@dataclass
class Sandbox:
    """A project directory, and the runner on it."""

    project: Path
    prelude: str = ""

    def write(self, source: str, name: str = "main.py") -> None:
        """Put a module into the project."""
        (self.project / name).write_text(source)

    def run(self, phase: str, data: bytes | None = None, **fields: Any) -> Ended:
        """Run one phase: input on standard input, result from descriptor 3."""
        task = ContainerInput.model_validate({"rollout_id": "r-1"} | fields)
        read, write = os.pipe()
        command = [
            sys.executable, "-I", "-c", LAUNCH.format(prelude=self.prelude),
            str(write), str(self.project / "artifacts"), str(self.project), str(ROOT),
            phase, "--input", "-", "--result", "fd:3",
        ]  # fmt: skip
        began = time.monotonic()
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(write,),
            cwd=self.project,
        ) as process:
            os.close(write)
            try:
                # The result is smaller than a pipe's buffer, so it can be read afterwards.
                out, err = process.communicate(encode(task) if data is None else data, timeout=60)
            finally:
                process.kill()
            seconds = time.monotonic() - began
            with os.fdopen(read, "rb") as stream:
                return Ended(process.returncode, stream.read(), out.decode(), err.decode(), seconds)
