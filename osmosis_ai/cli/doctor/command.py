"""The command line of ``osmosis doctor``."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from osmosis_ai.cli.errors import FAILED
from osmosis_ai.cli.output import print_json, result_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from osmosis_ai.cli.doctor.findings import Finding


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Check what rollouts need on this machine; exits with 1 when something fails."""
    from osmosis_ai.cli.doctor.examine import examine
    from osmosis_ai.cli.doctor.findings import Level

    findings = examine()
    healthy = all(finding.level is not Level.FAIL for finding in findings)
    if json:
        print_json({"ok": healthy, "checks": [asdict(finding) for finding in findings]})
    else:
        _print(findings)
    return 0 if healthy else FAILED


def _print(findings: "Sequence[Finding]") -> None:
    from rich.text import Text

    console = result_console()
    styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    for finding in findings:
        line = Text.assemble(
            (f"{finding.level:<5}", styles[finding.level]),
            (f"{finding.name:<16}", "bold"),
            finding.detail,
        )
        console.print(line, soft_wrap=True)
        if finding.remedy:
            console.print(f"     {'':<16}→ {finding.remedy}", soft_wrap=True)
