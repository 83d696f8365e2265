"""Finding objects by import string."""

import sys
from pathlib import Path

import pytest

from osmosis_ai.rollout import AgentWorkflowConfig
from osmosis_ai.rollout.imports import resolve_object


class Holder:
    class Inner(AgentWorkflowConfig):
        name: str = "inner"


@pytest.mark.parametrize("path", ["", "no_colon", ":attr", "module:", ":", "a.b.c"])
def test_malformed(path: str) -> None:
    with pytest.raises(ValueError, match="expected 'module:attr' format"):
        resolve_object(path)


def test_dotted_attributes() -> None:
    assert resolve_object(f"{__name__}:Holder.Inner") is Holder.Inner


@pytest.mark.parametrize("attribute", ["Missing", "Holder.Missing", "Holder.Inner.x.y"])
def test_missing_attribute(attribute: str) -> None:
    with pytest.raises(ImportError, match=f"does not export '{attribute}'"):
        resolve_object(f"{__name__}:{attribute}")


def test_missing_module_names_it_and_the_remedy() -> None:
    with pytest.raises(ImportError, match=r"no_such_module_here.*check the spelling"):
        resolve_object("no_such_module_here.inner:attr")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("raise RuntimeError('boom')", "raised RuntimeError: boom"),
        ("import sys; sys.exit(2)", "raised SystemExit: 2"),
        ("x = (", "raised SyntaxError"),
        (
            "raise ModuleNotFoundError('pip install \"osmosis-ai[extra]\"', name='extra')",
            r"pip install \"osmosis-ai\[extra\]\"",
        ),
    ],
)
def test_module_that_does_not_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, text: str
) -> None:
    (tmp_path / "broken_entrypoint.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match=text):
        resolve_object("broken_entrypoint:attr")
    assert "broken_entrypoint" not in sys.modules
