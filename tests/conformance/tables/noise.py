"""Output on standard output and standard error."""

from tests.conformance.model import Case, ok, sample

_WORKFLOWS = {
    "huge-stdout": "HugeStdout",
    "huge-stderr": "HugeStderr",
    "huge-line": "HugeLine",
    "non-utf8-output": "NonUtf8",
    "forged-result": "LooksLikeAResult",
}

CASES = [
    *(
        Case(
            f"noise-{name}",
            f"noise:{workflow}",
            ok(),
            "graders:LabelMatch",
            ok(sample(reward=1.0)),
        )
        for name, workflow in _WORKFLOWS.items()
    ),
    Case(
        "noise-grader",
        "returns:MessageList",
        ok(),
        "noise:NoisyGrader",
        ok(sample(reward=1.0)),
    ),
]
