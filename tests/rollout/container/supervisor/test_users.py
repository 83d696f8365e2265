"""Users as the image's own files name them; the system's own view is the reference."""

import grp
import os
import pwd
from typing import Any

import pytest

from osmosis_ai.rollout.container.supervisor import users
from osmosis_ai.rollout.container.supervisor.users import User, find_user


@pytest.mark.parametrize("account", pwd.getpwall(), ids=lambda account: account.pw_name)
def test_every_account_of_this_machine(account: pwd.struct_passwd) -> None:
    for spec in (account.pw_name, account.pw_uid, str(account.pw_uid)):
        found = find_user(spec)
        assert found is not None
        assert (found.uid, found.gid, found.home) == (
            account.pw_uid, account.pw_gid, account.pw_dir,
        )  # fmt: skip
        assert set(found.groups) == set(os.getgrouplist(account.pw_name, account.pw_gid))


@pytest.mark.parametrize("group", grp.getgrall()[:10], ids=lambda group: group.gr_name)
def test_a_group_replaces_the_accounts_own(group: grp.struct_group) -> None:
    for spec in (f"root:{group.gr_name}", f"0:{group.gr_gid}"):
        found = find_user(spec)
        assert found is not None
        assert (found.uid, found.gid, found.groups) == (0, group.gr_gid, [group.gr_gid])


def test_a_group_alone_is_roots() -> None:
    assert find_user(":54321") == find_user("root:54321")


@pytest.mark.parametrize("spec", [None, ""])
def test_no_user(spec: str | None) -> None:
    assert find_user(spec) is None


def test_numbers_need_no_entry() -> None:
    assert find_user(54321) == User(54321, 0, [0], "/")
    assert find_user("54321:12345") == User(54321, 12345, [12345], "/")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nobody-of-this-name", "unable to find user nobody-of-this-name"),
        ("root:no-such-group", "unable to find group no-such-group"),
        ("-1", "unable to find user -1"),
        (":no-such-group", "unable to find group no-such-group"),
    ],
)
def test_names_that_are_nowhere(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_user(spec)


def test_odd_lines_and_odd_files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are read from a directory of the test's own, by the same reader."""
    (tmp_path / "passwd").write_bytes(
        b"# a comment\n\nshort:x:1\n+::::::\nagent:x:1000:1000:\xff:/home/agent\n"
        b"homeless:x:1001:1001:::/bin/sh\n"
    )
    (tmp_path / "group").write_bytes(
        b"bad\nwheel:x:10:agent,other\nnear:x:11:agents\nagent:x:1000:\n"
    )
    read = users._records
    monkeypatch.setattr(
        users,
        "_records",
        lambda path, width: read(str(tmp_path / os.path.basename(path)), width),
    )
    assert find_user("agent") == User(1000, 1000, [1000, 10], "/home/agent")
    assert find_user("agent:wheel") == User(1000, 10, [10], "/home/agent")
    assert find_user("homeless") == User(1001, 1001, [1001], "/")
    (tmp_path / "passwd").unlink()
    (tmp_path / "group").unlink()
    assert find_user("7:8") == User(7, 8, [8], "/")
    with pytest.raises(ValueError, match="agent"):
        find_user("agent")
