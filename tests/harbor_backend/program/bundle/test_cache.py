"""A bundle is built once per content, whoever asks."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from osmosis_ai.packaging import EntryPoints, build_bundle

AGENT = EntryPoints(agent="main:DoublingWorkflow")

type Copy = Callable[[str], Path]


def test_unchanged_content_is_not_built_again(project: Copy, bundles_dir: Path) -> None:
    root = project("flat")
    first = build_bundle(root, entry_points=AGENT, bundles_dir=bundles_dir)
    stamp = first.stat().st_mtime_ns
    os.utime(root / "main.py")
    start = time.perf_counter()
    second = build_bundle(root, entry_points=AGENT, bundles_dir=bundles_dir)
    assert time.perf_counter() - start < 0.1
    assert second == first
    assert second.stat().st_mtime_ns == stamp
    assert len(first.parent.name) == 32
    assert [p.name for p in first.parent.iterdir()] == [first.name]


def test_content_entry_points_and_pyproject_each_make_another_bundle(
    project: Copy, bundles_dir: Path
) -> None:
    root = project("flat")
    found = {build_bundle(root, entry_points=AGENT, bundles_dir=bundles_dir)}
    both = EntryPoints(agent=AGENT.agent, grader="main:DoublingGrader")
    found.add(build_bundle(root, entry_points=both, bundles_dir=bundles_dir))
    (root / "helpers.py").write_text((root / "helpers.py").read_text() + "\n# more\n")
    found.add(build_bundle(root, entry_points=AGENT, bundles_dir=bundles_dir))
    (root / "pyproject.toml").write_text((root / "pyproject.toml").read_text() + "\n")
    found.add(build_bundle(root, entry_points=AGENT, bundles_dir=bundles_dir))
    assert len(found) == 4


def test_a_cache_inside_the_project_is_no_part_of_it(project: Copy) -> None:
    root = project("flat")
    inside = root / "cache"
    first = build_bundle(root, entry_points=AGENT, bundles_dir=inside)
    assert build_bundle(root, entry_points=AGENT, bundles_dir=inside) == first


def test_concurrent_processes_build_once_and_agree(project: Copy, bundles_dir: Path) -> None:
    root = project("flat")
    code = (
        "import logging, sys; from pathlib import Path\n"
        "import harbor_backend.program.bundle.build as build\n"
        "from osmosis_ai.packaging import EntryPoints, build_bundle\n"
        "real = build.run_uv\n"
        "def counted(*a, **k):\n"
        "    print('built', file=sys.stderr)\n"
        "    return real(*a, **k)\n"
        "build.run_uv = counted\n"
        f"print(build_bundle({str(root)!r}, bundles_dir=Path({str(bundles_dir)!r}), "
        "entry_points=EntryPoints(agent='main:DoublingWorkflow')))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    builders = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    outputs = [builder.communicate(timeout=120) for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0, 0], outputs
    assert len({out for out, _ in outputs}) == 1
    assert sum(err.count("built") for _, err in outputs) == 1


def test_a_damaged_entry_is_named(project: Copy, bundles_dir: Path) -> None:
    root = project("flat")
    wheel = build_bundle(root, entry_points=AGENT, bundles_dir=bundles_dir)
    wheel.write_bytes(b"not a wheel")
    with pytest.raises(RuntimeError, match="delete that directory") as error:
        build_bundle(root, entry_points=AGENT, bundles_dir=bundles_dir)
    assert str(wheel.parent) in str(error.value)
