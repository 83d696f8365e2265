"""What of an interpreter goes into the image."""

import tarfile
from pathlib import Path, PurePosixPath

import pytest

from sandbox_images.interpreter import (
    Interpreter,
    add_to_tar,
    linked_libraries,
    this_interpreter,
    wanted,
)


@pytest.mark.parametrize(
    ("relative", "answer"),
    [
        ("lib/python3.12/json/__init__.py", True),
        ("lib/python3.12/lib-dynload/_ssl.cpython-312-x86_64-linux-gnu.so", True),
        ("lib/python3.12/ensurepip/_bundled/pip-24.0-py3-none-any.whl", True),
        ("lib/python3.12/unittest/mock.py", True),
        ("include/python3.12/Python.h", True),
        ("lib/python3.12/test/test_json.py", False),
        ("lib/python3.12/idlelib/run.py", False),
        ("lib/python3.12/tkinter/__init__.py", False),
        ("lib/python3.12/lib-dynload/_tkinter.cpython-312-x86_64-linux-gnu.so", False),
        ("lib/python3.12/lib-dynload/_testcapi.cpython-312-x86_64-linux-gnu.so", False),
        ("lib/python3.12/lib-dynload/_xxtestfuzz.cpython-312-x86_64-linux-gnu.so", False),
        ("lib/python3.12/__pycache__/os.cpython-312.pyc", False),
        ("lib/python3.12/site-packages/secret_plugin/__init__.py", False),
        ("lib/python3.12/config-3.12-x86_64-linux-gnu/libpython3.12.a", False),
    ],
)
def test_what_is_wanted(relative: str, answer: bool) -> None:
    assert wanted(PurePosixPath(relative)) is answer


def test_libraries_of_the_tree_itself_are_not_looked_for_in_packages() -> None:
    listing = (
        "/p/bin/python3.12:\n"
        "\tlinux-vdso.so.1 (0x00007f9e90f44000)\n"
        "\tlibpython3.12.so.1.0 => /p/lib/libpython3.12.so.1.0 (0x00007f9e90800000)\n"
        "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f9e9061e000)\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f9e90f46000)\n"
        "/p/lib/python3.12/lib-dynload/_ssl.so:\n"
        "\tlibssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f0000000000)\n"
        "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f9e9061e000)\n"
        "\tlibgone.so.1 => not found\n"
    )
    assert linked_libraries(listing, Path("/p")) == [
        Path("/lib/x86_64-linux-gnu/libc.so.6"),
        Path("/lib/x86_64-linux-gnu/libssl.so.3"),
    ]


def test_debians_own_interpreter_comes_as_packages() -> None:
    debian = Interpreter(prefix=Path("/usr"), version="3.13")
    assert debian.is_debian
    assert debian.packages == ["python3", "python3-pip", "python3-venv"]


def test_the_tree_moves_to_usr_local(tmp_path: Path) -> None:
    prefix = tmp_path / "opt" / "python"
    stdlib = prefix / "lib" / "python3.12"
    stdlib.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python3.12").write_bytes(Path("/bin/true").read_bytes())
    (prefix / "bin" / "python3.12").chmod(0o755)
    (prefix / "bin" / "pip3.12").write_text(f"#!{prefix}/bin/python3.12\n")
    (stdlib / "os.py").write_text("name = 'posix'\n")
    (stdlib / "_sysconfigdata__linux.py").write_text(f"build = {{'prefix': '{prefix}'}}\n")
    (stdlib / "alias.py").symlink_to("os.py")
    archive_path = tmp_path / "overlay.tar"
    with tarfile.open(archive_path, "w") as archive:
        add_to_tar(archive, Interpreter(prefix=prefix, version="3.12"))
    with tarfile.open(archive_path) as archive:
        members = {member.name: member for member in archive}
        moved = archive.extractfile("usr/local/lib/python3.12/_sysconfigdata__linux.py")
        assert moved is not None
        assert moved.read() == b"build = {'prefix': '/usr/local'}\n"
    assert set(members) == {
        "usr/local/bin/python",
        "usr/local/bin/python3",
        "usr/local/bin/python3.12",
        "usr/local/lib/python3.12/os.py",
        "usr/local/lib/python3.12/alias.py",
        "usr/local/lib/python3.12/_sysconfigdata__linux.py",
    }
    assert members["usr/local/bin/python"].linkname == "python3.12"
    assert members["usr/local/lib/python3.12/alias.py"].linkname == "os.py"
    assert members["usr/local/bin/python3.12"].mode == 0o755
    assert {member.uid for member in members.values()} == {0}


def test_the_running_interpreter_is_found_behind_its_environment() -> None:
    python = this_interpreter()
    assert (python.prefix / "bin" / f"python{python.version}").is_file()
