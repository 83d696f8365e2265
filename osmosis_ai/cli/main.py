"""The ``osmosis`` command and its groups."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from osmosis_ai.cli.doctor.command import doctor
from osmosis_ai.cli.errors import INTERRUPTED, USAGE, CliError
from osmosis_ai.cli.output import say, show, show_help
from osmosis_ai.cli.sandboxes import sandboxes
from osmosis_ai.cli.trials.command import trials

# Typer keeps Click inside or outside its own package; this is where both can be reached.
_UsageError: Any = typer.BadParameter.__base__

# Help drawn with Rich takes three times as long to come up.
app = typer.Typer(
    name="osmosis",
    help="Run agent workflows and Harbor tasks in sandboxes, and get graded samples.",
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> int:
    """Print the version or, without a command, the help."""
    if version:
        from osmosis_ai import __version__

        show(f"osmosis {__version__}")
        raise typer.Exit
    show_help(context)
    return 0


@app.command()
def demo(
    rollouts: Annotated[int, typer.Option(min=1, help="Multiply prompts per backend.")] = 8,
    n_concurrent: Annotated[int, typer.Option(min=1, help="Rollouts at a time.")] = 4,
    local_only: Annotated[bool, typer.Option("--local-only", help="Leave Docker out.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Run real agent rollouts in this process and in containers, and compare them."""
    from osmosis_ai.cli.demo import run_demo

    return run_demo(
        rollouts=rollouts, n_concurrent=n_concurrent, local_only=local_only, json_output=json
    )


app.add_typer(trials)
app.command()(doctor)
app.add_typer(sandboxes)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code: 0, 1 (failed), 2 (wrong usage) or 130."""
    try:
        code = app(list(arguments), prog_name="osmosis", standalone_mode=False)
    except CliError as exc:
        say(f"osmosis: {exc}")
        return exc.code
    except _UsageError as exc:
        where = "osmosis" if exc.ctx is None else exc.ctx.command_path
        say(f"osmosis: {exc.format_message().rstrip('.')}. Try '{where} --help'.")
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        say("osmosis: interrupted")
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))
