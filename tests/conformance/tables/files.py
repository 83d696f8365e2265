"""Artifacts, as the host holds them afterwards."""

from tests.conformance.model import AGENT, Case, failed, ok, sample

_GRADED = ok(sample(reward=1.0))
_TREE = {
    "a/b/deep.txt": b"deep",
    "a/side.txt": b"side",
    "empty.txt": b"",
    "a name with spaces, ü.txt": b"odd name",
    ".hidden": b"hidden",
}

CASES = [
    Case(
        "artifacts-none",
        "returns:MessageList",
        ok(),
        "graders:One",
        _GRADED,
        artifacts={},
    ),
    Case(
        "artifacts-of-agent",
        "files:WritesText",
        ok(),
        "graders:One",
        _GRADED,
        artifacts={"run.log": b"started\nended\n"},
    ),
    Case("artifacts-tree", "files:WritesTree", ok(), "graders:One", _GRADED, artifacts=_TREE),
    Case(
        "artifacts-binary",
        "files:WritesBinary",
        ok(),
        "graders:One",
        _GRADED,
        artifacts={"image.png": bytes(range(256)) * 1024},
    ),
    Case(
        "artifacts-symlinks",
        "files:WritesSymlinks",
        ok(),
        "graders:One",
        _GRADED,
        artifacts={"real.txt": b"real"},
    ),
    Case(
        "artifacts-of-failed-agent",
        "files:WritesThenFails",
        failed(AGENT, "broken"),
        "graders:One",
        artifacts={"last-words.txt": b"it broke here"},
    ),
    Case(
        "artifacts-of-grader",
        "files:WritesText",
        ok(),
        "files:GraderWrites",
        _GRADED,
        artifacts={"run.log": b"started\nended\n", "grades/report.txt": b"well done"},
    ),
    Case(
        "artifacts-read-by-grader",
        "files:WritesText",
        ok(),
        "files:GraderReads",
        _GRADED,
        artifacts={"run.log": b"started\nended\ngraded\n"},
    ),
    Case(
        "artifacts-of-failed-grader",
        "files:WritesText",
        ok(),
        "files:GraderFailsAfterWriting",
        failed(AGENT, "the judge left", sample()),
        artifacts={"run.log": b"started\nended\n", "verdict.txt": b"unsure"},
    ),
    Case(
        "artifacts-not-graded",
        "files:WritesText",
        ok(),
        request={"grade": False},
        artifacts={"run.log": b"started\nended\n"},
    ),
]
