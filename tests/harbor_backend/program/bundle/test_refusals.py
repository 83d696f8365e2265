"""What cannot be bundled is refused with what, where and what to do."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harbor_backend.program.bundle import UvError, entry_point_for
from harbor_backend.program.bundle.build import runner_source
from osmosis_ai.packaging import EntryPoints, build_bundle, inspect_bundle, project_dir_for

AGENT = EntryPoints(agent="main:DoublingWorkflow")

type Copy = Callable[[str], Path]


def refused(root: Path, bundles_dir: Path, match: str, entry_points: EntryPoints = AGENT) -> str:
    with pytest.raises(ValueError, match=match) as error:
        build_bundle(root, entry_points=entry_points, bundles_dir=bundles_dir)
    return str(error.value)


def test_symlinks_that_leave_break_or_lead_to_directories(
    project: Copy, bundles_dir: Path, tmp_path: Path
) -> None:
    root = project("flat")
    outside = tmp_path / "secret.txt"
    outside.write_text("x")
    link = root / "shared" / "link"
    for target, match in (
        (outside, "leaves the project"),
        (Path("nowhere"), "broken symlink"),
        (Path("link"), "broken symlink"),
        (root / "prompts", "symlink to a directory"),
    ):
        link.symlink_to(target)
        assert str(link) in refused(root, bundles_dir, match)
        link.unlink()


def test_a_cache_that_is_the_project_itself(project: Copy) -> None:
    root = project("flat")
    refused(root, root, "is the project itself")


def test_a_class_without_a_source_file() -> None:
    with pytest.raises(ValueError, match=r"Typed has no source file.*code_dir="):
        project_dir_for(type("Typed", (), {"__module__": "nowhere"}))


def test_a_class_with_no_pyproject_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lonely_module.py").write_text("class Lonely: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    from lonely_module import Lonely  # type: ignore[import-not-found]

    with pytest.raises(ValueError, match=r"lonely_module\.Lonely .*code_dir=") as error:
        project_dir_for(Lonely)
    assert str(tmp_path / "lonely_module.py") in str(error.value)
    with pytest.raises(ValueError, match="is not in the project"):
        entry_point_for(Lonely, tmp_path / "elsewhere")


def test_a_class_of_the_sdk_is_no_rollout_project() -> None:
    with pytest.raises(ValueError, match="belongs to osmosis-ai itself"):
        project_dir_for(EntryPoints)


@pytest.mark.parametrize(
    ("entry_points", "match"),
    [
        (EntryPoints(agent="mian:DoublingWorkflow"), "agent='mian:.*no module mian"),
        (EntryPoints(agent="shared.none:X"), "no module shared.none"),
        (EntryPoints(agent="main:A", workflow_config="shared.none:c"), "workflow_config='shared"),
    ],
)
def test_an_entry_point_whose_module_is_missing(
    project: Copy, bundles_dir: Path, entry_points: EntryPoints, match: str
) -> None:
    refused(project("flat"), bundles_dir, match, entry_points)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[tool.x]\n", "needs a .project. table"),
        ('[project]\nname = "../x"\nversion = "1"\n', "project.name is '../x'"),
        ("[project\n", "is not TOML"),
        (
            '[project]\nname = "x"\nversion = "1"\ndependencies = ["my-lib"]\n'
            '[tool.uv.sources]\nMy_Lib = { path = "../lib" }\n',
            "dependency 'my-lib' comes from tool.uv.sources",
        ),
        ('[project]\nname = "x"\ndynamic = ["version"]\n', r"project.dynamic is \['version'\]"),
    ],
)
def test_a_pyproject_that_cannot_be_bundled(
    project: Copy, bundles_dir: Path, text: str, match: str
) -> None:
    root = project("flat")
    (root / "pyproject.toml").write_text(text)
    assert str(root) in refused(root, bundles_dir, match)


def test_a_directory_that_is_no_project(tmp_path: Path, bundles_dir: Path) -> None:
    refused(tmp_path, bundles_dir, "has no pyproject.toml")


def test_a_build_that_fails_shows_what_the_backend_said(project: Copy, bundles_dir: Path) -> None:
    root = project("packaged")
    pyproject = root / "pyproject.toml"
    pyproject.write_text(
        pyproject.read_text() + '\n[tool.hatch.build.hooks.custom]\npath = "hook.py"\n'
    )
    (root / "hook.py").write_text("raise RuntimeError('the hook is broken')\n")
    entry_points = EntryPoints(agent="echo_agent.workflow:EchoWorkflow")
    with pytest.raises(UvError, match="the hook is broken"):
        build_bundle(root, entry_points=entry_points, bundles_dir=bundles_dir)
    left = [p.name for p in (bundles_dir / "echo-agent").iterdir() if p.suffix != ".lock"]
    assert left == []


def test_a_wheel_without_a_runner(tmp_path: Path) -> None:
    wheel = tmp_path / "plain-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("plain-1.0.dist-info/METADATA", "Name: plain\nVersion: 1.0\n")
    with pytest.raises(ValueError, match=r"has no runner.*build_bundle"):
        inspect_bundle(wheel)
    wheel.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="not a readable wheel"):
        inspect_bundle(wheel)


def test_a_wheel_with_console_scripts_is_a_bundle(tmp_path: Path) -> None:
    wheel = tmp_path / "other-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "other-1.0.dist-info/METADATA",
            "Name: other\nVersion: 1.0\nRequires-Dist: a; sys_platform == 'linux'\n"
            "Requires-Dist: b; extra == 'docs'\nRequires-Dist: extra-c\n",
        )
        archive.writestr(
            "other-1.0.dist-info/entry_points.txt",
            "[console_scripts]\nother-agent = other.bundle_main:agent_main\n",
        )
    info = inspect_bundle(wheel)
    assert (info.agent, info.grader, info.runner) == ("other.bundle_main:agent_main", None, None)
    assert info.requirements == ("a; sys_platform == 'linux'", "extra-c")


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({}, "both are None"),
        ({"agent": "main:A", "grader_config": "main:c"}, "without grader"),
        ({"agent": "main"}, "is not an import path"),
        ({"agent": "main:make.<locals>.A"}, "defined inside a function"),
        ({"agent": "__main__:A"}, "main:..."),
        ({"agent": "main:class"}, "is not an import path"),
    ],
)
def test_entry_points_of_another_form(values: dict[str, str], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        EntryPoints(**values)


@given(st.text(max_size=30) | st.from_regex(r"[a-z_.]{1,6}:[a-zA-Z_.]{1,6}", fullmatch=True))
def test_an_accepted_import_path_is_one_that_python_can_import(text: str) -> None:
    try:
        accepted = EntryPoints(agent=text)
    except ValueError:
        return
    compile(runner_source(accepted), "runner", "exec")
