"""Which of Harbor's log lines a user of the library sees, each time in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import logging, sys
from pathlib import Path
from harbor.utils.logger import logger
{before}
from harbor_backend.harbor_logs import quiet_harbor
quiet_harbor()
{after}
logger.error("error")
trial = logger.getChild("harbor.trial.trial.one")
file = logging.FileHandler(sys.argv[1])
file.setLevel(logging.DEBUG)
trial.addHandler(file)
for level in (logging.DEBUG, logging.INFO, logging.WARNING):
    trial.log(level, logging.getLevelName(level).lower())
"""
ALL = ["error", "debug", "info", "warning"]
INFO = ["error", "info", "warning"]
WARNINGS = ["error", "warning"]

# what runs before Harbor is quieted, what after, the lines on stderr
CASES: dict[str, tuple[str, str, list[str]]] = {
    "nothing is configured": ("", "", []),
    "everything from INFO on": ("logging.basicConfig(level=logging.INFO)", "", INFO),
    "everything": ("logging.basicConfig(level=logging.DEBUG)", "", ALL),
    "the default": ("logging.basicConfig()", "", WARNINGS),
    "errors only": ("logging.basicConfig(level=logging.ERROR)", "", ["error"]),
    "configured later": ("", "logging.basicConfig(level=logging.INFO)", INFO),
    "less of Harbor": (
        "logging.basicConfig(level=logging.INFO)\n"
        "logging.getLogger('harbor').setLevel(logging.ERROR)",
        "",
        ["error"],
    ),
    "more of Harbor": (
        "logging.basicConfig(level=logging.WARNING)\n"
        "logging.getLogger('harbor').setLevel(logging.DEBUG)",
        "",
        ALL,
    ),
    "a level that the handler has": (
        "logging.basicConfig(level=logging.DEBUG)\n"
        "logging.getLogger().handlers[0].setLevel(logging.INFO)",
        "",
        INFO,
    ),
    "a handler for Harbor": (
        "logging.getLogger('harbor').addHandler(logging.StreamHandler())\n"
        "logging.getLogger('harbor').setLevel(logging.INFO)",
        "",
        INFO,
    ),
    "said twice": ("logging.basicConfig(level=logging.INFO)", "quiet_harbor()", INFO),
    "who configured the very logger keeps its level": (
        "logging.basicConfig(level=logging.DEBUG)\nlogger.setLevel(logging.WARNING)",
        "",
        WARNINGS,
    ),
    "and its handler": ("logger.addHandler(logging.StreamHandler())", "", ALL),
    "also one that passes on to others": (
        "logging.basicConfig(level=logging.INFO)\nlogger.addHandler(logging.NullHandler())",
        "",
        ALL,
    ),
    "and that it passes nothing on": (
        "logging.basicConfig(level=logging.DEBUG)\nlogger.propagate = False",
        "",
        ["error"],  # which nobody takes, so that Python prints it; the others a file takes
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_printed(case: str, tmp_path: Path) -> None:
    before, after, expected = CASES[case]
    trials = tmp_path / "trial.log"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before, after=after), str(trials)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    # Each line ends in its message, whatever stands before it.
    assert [line.rpartition(":")[2] for line in done.stderr.splitlines()] == expected
    # A trial's own file has all that its logger lets through.
    trials_own = ["warning"] if "\nlogger.setLevel" in before else ["debug", "info", "warning"]
    assert trials.read_text().splitlines() == trials_own
