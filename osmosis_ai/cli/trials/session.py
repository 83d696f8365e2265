"""One ``osmosis trials run`` from its plan to its exit code."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from osmosis_ai.cli.errors import INTERRUPTED, TERMINATED, CliError, harbor_extra
from osmosis_ai.cli.output import print_json, say
from osmosis_ai.cli.trials.plan import Plan
from osmosis_ai.cli.trials.results import TrialReport, as_json, exit_code
from osmosis_ai.cli.trials.table import print_report
from osmosis_ai.common.files import write_atomically


def run_session(plan: Plan, *, json_output: bool) -> int:
    """Run a plan and print what came of it; returns the exit code.

    Ctrl-C and SIGTERM end the trials and remove their sandboxes; 130 and 143.

    Raises:
        CliError: it could not begin.
    """
    with harbor_extra("osmosis trials run"):
        from osmosis_ai.cli.trials.run import run_plan
    began = time.monotonic()
    try:
        reports = asyncio.run(_stoppable(run_plan(plan)))
    except KeyboardInterrupt:
        say("osmosis: interrupted; the trials were ended and their sandboxes removed")
        return INTERRUPTED
    except asyncio.CancelledError:
        say("osmosis: terminated; the trials were ended and their sandboxes removed")
        return TERMINATED
    document = as_json(plan, reports, time.monotonic() - began)
    if plan.write_report:
        _write_report(plan, document)
    _print(plan, reports, document, json_output=json_output)
    return exit_code(reports, plan.threshold)


async def _stoppable(run: Any) -> list[TrialReport]:
    """Let SIGTERM do what Ctrl-C does."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    loop.set_exception_handler(_report_unless_benign)
    if task is not None and sys.platform != "win32":
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    reports: list[TrialReport] = await run
    return reports


def _report_unless_benign(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # anyio's unix sockets do this when a call is cancelled in the very step that it gets data.
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        loop.default_exception_handler(context)


def _write_report(plan: Plan, document: dict[str, Any]) -> None:
    path = plan.output / "report.json"
    try:
        write_atomically(path, json.dumps(document, indent=2) + "\n")
    except OSError as exc:
        raise CliError(f"{path} cannot be written: {exc}") from exc


def _print(
    plan: Plan, reports: Sequence[TrialReport], document: dict[str, Any], *, json_output: bool
) -> None:
    if json_output:
        print_json(document)
    else:
        print_report(plan, reports, document["seconds"])
