"""``osmosis trials export``: saved rollouts in a form that other tools read."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from osmosis_ai.cli.errors import FAILED, CliError, harbor_extra
from osmosis_ai.cli.output import print_json, say


class ExportFormat(StrEnum):
    """What saved rollouts can be made into."""

    HARBOR_JOB = "harbor-job"


def export_command(
    output: Annotated[
        Path, typer.Option(help="The directory to write, which must be new or empty.")
    ],
    to: Annotated[
        ExportFormat, typer.Option(help="harbor-job: a job directory for Harbor's own tools.")
    ] = ExportFormat.HARBOR_JOB,
    root: Annotated[
        Path | None,
        typer.Option(
            "--from", help="The folder that rollouts were saved to; ~/.osmosis by default."
        ),
    ] = None,
    rollout: Annotated[
        list[str] | None,
        typer.Option(help="Export this rollout only; may be given several times."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(help="Export this agent's only: a native agent, or osmosis-workflow."),
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the rollouts' tasks, or their one task: with it, Harbor can run "
            "and grade them again."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Copy rollouts that a server saved into a Harbor job directory.

    Exits with 0, with 1 when a rollout could not be exported.
    """
    with harbor_extra("osmosis trials export"):
        from harbor_backend.admin import export_rollouts
    from osmosis_ai.rollout.artifacts import artifact_root

    source = artifact_root() if root is None else root.expanduser().absolute()
    if not source.is_dir():
        raise CliError(f"{source} is no directory: give --from the folder of saved rollouts")
    if tasks is not None and not tasks.expanduser().is_dir():
        raise CliError(f"--tasks {tasks} is no directory")
    try:
        exported = export_rollouts(
            source,
            output.expanduser().absolute(),
            ids=rollout or [],
            agent=agent,
            tasks=None if tasks is None else tasks.expanduser().resolve(),
        )
    except ValueError as exc:
        raise CliError(" ".join(str(exc).split())) from exc
    except OSError as exc:
        raise CliError(f"{output} cannot be written: {exc}", FAILED) from exc
    if json:
        names = [end.name for end in exported.trials]
        print_json(
            {"to": to, "output": str(output), "trials": names, "problems": exported.problems}
        )
    else:
        say(f"{len(exported.trials)} rollout(s) exported to {output}")
    for problem in exported.problems:
        say(f"osmosis: not exported: {problem}")
    return FAILED if exported.problems else 0
