"""``osmosis sandboxes``: what the engine holds of ours, and getting rid of it."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osmosis_ai.cli.errors import FAILED, CliError, harbor_extra
from osmosis_ai.cli.output import (
    confirm,
    duration,
    print_json,
    result_console,
    say,
    show,
    show_help,
)

if TYPE_CHECKING:
    from harbor_backend.admin import SandboxRecord

sandboxes = typer.Typer(
    name="sandboxes",
    help="List and remove sandboxes.",
    rich_markup_mode=None,
    invoke_without_command=True,
    callback=show_help,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@sandboxes.command("ls")
def list_command(json: Json = False) -> int:
    """List the sandboxes of the engine, and whose they are."""
    import asyncio

    found = asyncio.run(_list())
    if json:
        print_json([as_json(sandbox) for sandbox in found])
    elif found:
        _print_table(found)
    else:
        say("No sandboxes.")
    return 0


@sandboxes.command("rm")
def remove_command(
    names: Annotated[list[str] | None, typer.Argument(help="Names as `ls` prints them.")] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Those that a dead engine left; never a kept one.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All, those of running engines included.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> int:
    """Remove sandboxes: by name, the stale ones, or all."""
    if sum([bool(names), stale, everything]) != 1:
        raise CliError("sandboxes rm: give names, or --stale, or --all (exactly one of them)")
    import asyncio

    chosen = _choose(asyncio.run(_list()), names or [], stale=stale)
    in_use = [s for s in chosen if s.owner != "dead" and not s.kept]
    if in_use and not yes:
        _confirm(in_use)
    removed = asyncio.run(_remove(chosen))
    if json:
        print_json([as_json(sandbox) for sandbox in removed])
    else:
        for sandbox in removed:
            show(f"removed {sandbox.name}")
        say(f"{len(removed)} of {len(chosen)} sandboxes removed.")
    return 0 if len(removed) == len(chosen) else FAILED


def as_json(sandbox: "SandboxRecord") -> dict[str, Any]:
    """What ``--json`` prints of a sandbox."""
    return {
        "name": sandbox.name,
        "container": sandbox.container,
        "kind": sandbox.kind,
        "rollout_id": sandbox.rollout_id,
        "instance": sandbox.instance,
        "owner": str(sandbox.owner),
        "state": sandbox.state,
        "kept": sandbox.kept,
        "stale": sandbox.stale,
        "age_sec": round(sandbox.age_sec, 1),
        "project": sandbox.project,
    }


def _choose(
    found: Sequence["SandboxRecord"], names: list[str], *, stale: bool
) -> list["SandboxRecord"]:
    if not names:
        return [sandbox for sandbox in found if sandbox.stale or not stale]
    unknown = sorted(set(names) - {sandbox.name for sandbox in found})
    if unknown:
        raise CliError(
            f"sandboxes rm: {', '.join(unknown)} is no sandbox; `osmosis sandboxes ls` lists them"
        )
    return [sandbox for sandbox in found if sandbox.name in names]


def _confirm(in_use: Sequence["SandboxRecord"]) -> None:
    what = f"{len(in_use)} of them may belong to a running engine ({in_use[0].name}, …)"
    if not sys.stdin.isatty():
        raise CliError(f"sandboxes rm: {what}; pass --yes to remove them all the same")
    confirm(f"{what}. Remove them all the same?")


async def _list() -> list["SandboxRecord"]:
    with harbor_extra("osmosis sandboxes"):
        from harbor_backend.admin import EngineError, list_sandboxes, shared_engine
    try:
        return await list_sandboxes(shared_engine())
    except EngineError as exc:
        raise CliError(str(exc), FAILED) from exc


async def _remove(chosen: Sequence["SandboxRecord"]) -> list["SandboxRecord"]:
    from harbor_backend.admin import remove_sandboxes, shared_engine

    return await remove_sandboxes(shared_engine(), chosen)


def _print_table(found: Sequence["SandboxRecord"]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("NAME", "KIND", "STATE", "AGE", "OWNER", "KEPT", "ROLLOUT"):
        table.add_column(title, overflow="fold")
    for sandbox in found:
        table.add_row(
            sandbox.name,
            sandbox.kind,
            sandbox.state,
            duration(sandbox.age_sec),
            str(sandbox.owner),
            "yes" if sandbox.kept else "",
            sandbox.rollout_id,
        )
    result_console().print(table)
