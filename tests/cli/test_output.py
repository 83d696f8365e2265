"""What others wrote does not steer the terminal, and nothing is printed past what sees to it."""

import ast
import json

import pytest
from rich.table import Table
from rich.text import Text

from osmosis_ai.cli import output
from tests.cli.conftest import ROOT

HOSTILE = "a\x1b[2Jb\x9bc\u202ed\x07"
SHOWN = r"a\u001b[2Jb\u009bc\u202ed\u0007"

CLI = ROOT / "osmosis_ai" / "cli"
PRINTERS = {CLI / "output.py", CLI / "console.py"}
FORBIDDEN = {"print", "echo", "secho", "Console", "confirm", "prompt"}


def test_every_way_to_print_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table()
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    output.say(HOSTILE)
    output.show(HOSTILE)
    output.print_json({"text": HOSTILE})
    output.result_console().print(HOSTILE)
    output.result_console().print(table)
    output.result_console().print(Text("\x1b[2J\u202e", style="bold"))
    output.talk_console().print(HOSTILE, style="red")
    captured = capsys.readouterr()
    assert captured.out.count(SHOWN) == 5
    assert captured.err.count(SHOWN) == 2
    assert not set(captured.out + captured.err) & set("\x1b\x9b\u202e\x07")


def test_a_line_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("a\nosmosis: all is well\r")
    assert capsys.readouterr().err == "a\\nosmosis: all is well\\r\n"


def test_json_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({HOSTILE: [HOSTILE, "\U000e0041\n"]})
    assert json.loads(capsys.readouterr().out) == {HOSTILE: [HOSTILE, "\U000e0041\n"]}


def _forbidden(tree: ast.AST) -> list[int]:
    """The lines that print by themselves, or hold a stream to print to."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN - {"confirm"}:
                found.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="typer"), attr=name) if name in FORBIDDEN:
                found.append(node.lineno)
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"),
                    attr="write" | "writelines",
                )
            ):
                found.append(node.lineno)
    return found


def test_only_the_output_module_prints() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(CLI.rglob("*.py"))
        if path not in PRINTERS
        for line in _forbidden(ast.parse(path.read_text()))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "code",
    ["print(1)", "typer.echo(a)", "sys.stdout.write(a)", "sys.stderr.write(a)", "Console()"],
)
def test_the_check_sees_what_prints(code: str) -> None:
    assert _forbidden(ast.parse(code)) == [1]
