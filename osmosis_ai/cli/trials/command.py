"""The command line of ``osmosis trials``."""

from pathlib import Path
from typing import Annotated

import typer

from osmosis_ai.cli.output import show_help
from osmosis_ai.cli.trials.choices import EnvironmentName, Keep
from osmosis_ai.cli.trials.export import export_command

trials = typer.Typer(
    name="trials",
    help="Run Harbor tasks as they are, and export rollouts.",
    rich_markup_mode=None,
    invoke_without_command=True,
    callback=show_help,
)
trials.command("export")(export_command)


@trials.command("run")
def run_command(
    tasks: Annotated[
        str,
        typer.Argument(
            help="A folder of Harbor tasks, one task, or a dataset: NAME@VERSION of a registry, "
            "a package org/name@ref, the URL of a git repository."
        ),
    ],
    agent: Annotated[
        str,
        typer.Option(help="A native agent (oracle, terminus-2, …), or a workflow as module:Class."),
    ],
    grader: Annotated[
        str | None,
        typer.Option(help="An SDK grader as module:Class, for tasks without tests of their own."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="What the agent's model calls go to: the base URL of an OpenAI-compatible "
            "server (its key is read from OSMOSIS_API_KEY), or embedded/<policy>."
        ),
    ] = None,
    environment: Annotated[
        EnvironmentName, typer.Option(help="docker chooses per task; the others force one.")
    ] = EnvironmentName.DOCKER,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="What skypilot or sky-docker is to use, for example registry=…, pool=… or "
            "cluster=…, hosts=a,b, slots=8; may be given several times.",
        ),
    ] = None,
    agent_base_url: Annotated[
        str | None,
        typer.Option(help="For skypilot: this process's URL as sandboxes reach it."),
    ] = None,
    agent_bind: Annotated[
        str | None,
        typer.Option(help="For skypilot: the host:port that this process listens on for it."),
    ] = None,
    n_concurrent: Annotated[int, typer.Option(min=1, help="Trials at a time.")] = 4,
    attempts: Annotated[int, typer.Option(min=1, help="Trials per task.")] = 1,
    task: Annotated[
        list[str] | None, typer.Option(help="Run this task only; may be given several times.")
    ] = None,
    registry_path: Annotated[
        Path | None,
        typer.Option(help="The registry.json that has the dataset, or the folder that holds it."),
    ] = None,
    registry_url: Annotated[
        str | None, typer.Option(help="The registry that has the dataset; Harbor's by default.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Exit with 1 when the mean reward is below, or a trial has none."),
    ] = None,
    keep: Annotated[
        Keep, typer.Option(help="Leave sandboxes running, and print how to enter them.")
    ] = Keep.NONE,
    force_build: Annotated[
        bool,
        typer.Option(
            "--force-build",
            help="Build images again, from Dockerfiles even where a task names an image.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Where results go, as a Harbor job with a report.json; ~/.osmosis by default."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Run every task of a folder with an agent, and grade it by its own tests.

    Exits with 0, with 1 below the threshold or when a trial could not be run,
    with 2 when the command line is wrong.
    """
    from osmosis_ai.cli.trials.planning import make_plan
    from osmosis_ai.cli.trials.session import run_session

    plan = make_plan(
        tasks,
        registry_path=registry_path,
        registry_url=registry_url,
        agent=agent,
        grader=grader,
        model=model,
        environment=environment,
        options=option or [],
        agent_base_url=agent_base_url,
        agent_bind=agent_bind,
        n_concurrent=n_concurrent,
        attempts=attempts,
        only=task or [],
        threshold=threshold,
        keep=keep,
        force_build=force_build,
        output=output,
    )
    return run_session(plan, json_output=json)
