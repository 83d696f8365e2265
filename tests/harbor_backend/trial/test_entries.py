"""What may be in a task, and that links of its copy lead where they led."""

import errno
import os
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harbor_backend.trial.entries import check_entries, keep_links_inside

KEPT = {
    # A link below tests/ and where it leads; "TASK" is where the task is.
    "beside it": "a.txt",
    "in another directory": "../data/b.txt",
    "to a directory": "../data",
    "to nothing": "missing",
    "to nothing, deeper": "../data/none/at/all",
    "through the task's own parent": "../../task/data/b.txt",
    "absolute": "TASK/data/b.txt",
    "to the task": "..",
    "to itself": "link",
}
REFUSED = {
    "absolute": "/etc/passwd",
    "out of it": "../../elsewhere",
    "to nothing out of it": "../../missing",
    "to the folder of tasks": "../..",
    "to one whose name begins like it": "../../task-2",
    "out of it through another link": "../data/out",
}


def made(folder: Path) -> Path:
    task = folder / "task"
    for name in ("tests/a.txt", "data/b.txt"):
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(name)
    return task


@pytest.mark.parametrize("case", KEPT)
def test_links_that_stay_in_the_task_are_kept(case: str, tmp_path: Path) -> None:
    task, copy = made(tmp_path), tmp_path / "work" / "copy"
    (task / "tests" / "link").symlink_to(KEPT[case].replace("TASK", str(task)))
    check_entries(task)
    shutil.copytree(task, copy, symlinks=True)
    keep_links_inside(copy, task)
    link = copy / "tests" / "link"
    assert link.is_symlink()
    assert not os.path.isabs(os.readlink(link))
    leads_to = Path(os.path.realpath(task / "tests" / "link")).relative_to(task)
    assert Path(os.path.realpath(link)) == copy / leads_to
    if not KEPT[case].startswith(("TASK", "../../")):
        assert os.readlink(link) == KEPT[case]


@pytest.mark.parametrize("case", REFUSED)
def test_links_that_leave_it_are_refused(case: str, tmp_path: Path) -> None:
    task = made(tmp_path)
    for name in ("elsewhere", "task-2"):
        (tmp_path / name).mkdir()
    if "data/out" in REFUSED[case]:
        (task / "data" / "out").symlink_to(tmp_path)
    (task / "tests" / "link").symlink_to(REFUSED[case])
    with pytest.raises(ValueError, match=r"symbolic link .* leaves the task"):
        check_entries(task)


def test_a_task_may_be_reached_through_a_link(tmp_path: Path) -> None:
    task = made(tmp_path)
    (task / "tests" / "link").symlink_to(task / "data")
    (tmp_path / "by-link").symlink_to(task)
    check_entries(tmp_path / "by-link")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    task = made(tmp_path)
    os.mkfifo(task / "pipe")
    with pytest.raises(ValueError, match="pipe, which is neither a file nor a directory"):
        check_entries(task)
    (task / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(task / "door"))
        with pytest.raises(ValueError, match="door, which is neither"):
            check_entries(task)


@given(
    links=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a"]),
            st.lists(st.sampled_from(["..", "a", "b", "d", "e", "task"]), min_size=1, max_size=5),
            st.booleans(),
        ),
        max_size=5,
    )
)
def test_no_link_of_a_copy_leads_out_of_it(
    links: list[tuple[str, list[str], bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Either a task is refused, or each link of its copy leads to what the original led to."""
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("links")))
    task, copy = folder / "task", folder / "work" / "task"
    (task / "d" / "e").mkdir(parents=True)
    for name, parts, absolute in links:
        if not os.path.lexists(task / name):
            (task / name).symlink_to(Path(task if absolute else "", *parts))
    named = [path.relative_to(task) for path in task.rglob("*") if path.is_symlink()]
    try:
        check_entries(task)
    except ValueError:
        assert not all(is_in(os.path.realpath(task / link), task) for link in named)
        return
    shutil.copytree(task, copy, symlinks=True)
    keep_links_inside(copy, task)
    for link in named:
        assert (copy / link).is_symlink()
        leads_to = os.path.realpath(copy / link)
        assert is_in(leads_to, copy) or is_circle(copy / link)
        if (task / link).exists():
            goal = Path(os.path.realpath(task / link)).relative_to(task)
            assert leads_to == str(copy / goal)


def is_circle(link: Path) -> bool:
    """Whether following a link never ends; by its name alone it may then seem to lead anywhere."""
    try:
        link.stat()
    except OSError as exc:
        return exc.errno == errno.ELOOP
    return False


def is_in(path: str, folder: Path) -> bool:
    return Path(path).is_relative_to(folder)
