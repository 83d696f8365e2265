"""Return values of ``run()``."""

from osmosis_ai.rollout.execution import NO_SAMPLE
from tests.conformance.model import (
    DONE,
    HISTORY,
    VALIDATION,
    Case,
    failed,
    matches,
    ok,
    sample,
)

_WRONG_SHAPE = (
    "AgentWorkflow.run() must return AgentWorkflowOutput, a list of messages or None, not "
)
_ONE_ERROR = r"1 validation error\(s\) for AgentWorkflowOutput: "

CASES = [
    Case(
        "return-output",
        "returns:Output",
        ok(sample(metrics={"steps": 1.0, "tokens": 7.0})),
        "graders:LabelMatch",
        ok(sample(metrics={"steps": 1.0, "tokens": 7.0}, reward=1.0)),
    ),
    Case(
        "return-list",
        "returns:MessageList",
        ok(),
        "graders:LabelMatch",
        ok(sample(reward=1.0)),
    ),
    Case(
        "return-none-with-source",
        "returns:NoneWithSource",
        ok(sample(metrics={"turns": 2})),
        "graders:LabelMatch",
        ok(sample(metrics={"turns": 2}, reward=1.0)),
    ),
    Case(
        "return-none-without-source",
        "returns:NoneWithoutSource",
        failed(VALIDATION, NO_SAMPLE),
        "graders:One",
    ),
    Case(
        "return-output-beats-source",
        "returns:OutputBeatsSource",
        ok(sample(HISTORY)),
        "graders:LabelMatch",
        ok(sample(HISTORY, reward=1.0)),
    ),
    Case(
        "return-empty-list",
        "returns:EmptyList",
        ok(sample([])),
        "graders:One",
        ok(sample([], reward=1.0)),
    ),
    Case(
        "return-output-without-messages",
        "returns:OutputWithoutMessages",
        failed(VALIDATION, NO_SAMPLE),
        "graders:One",
    ),
    *(
        Case(
            f"return-{kind.lower()}",
            f"returns:{kind}",
            failed(VALIDATION, _WRONG_SHAPE + kind.lower()),
            "graders:One",
        )
        for kind in ("Tuple", "Dict", "Str")
    ),
    Case(
        "return-list-of-strings",
        "returns:ListOfStrings",
        failed(VALIDATION, matches(_ONE_ERROR + r"messages\.0: Input should be a valid dict.*")),
        "graders:One",
    ),
    *(
        Case(
            f"output-{name}",
            f"returns:{workflow}",
            failed(VALIDATION, matches(_ONE_ERROR + r"score: Extra inputs are not permitted")),
            "graders:One",
        )
        for name, workflow in (
            ("unknown-field", "UnknownField"),
            ("smuggled-field", "SmuggledField"),
        )
    ),
    *(
        Case(
            f"metric-{name}",
            f"returns:{workflow}",
            failed(
                VALIDATION, matches(_ONE_ERROR + r"metrics\.loss: Input should be a finite number")
            ),
            "graders:One",
        )
        for name, workflow in (
            ("nan", "MetricNaN"),
            ("inf", "MetricInf"),
            ("minus-inf", "MetricMinusInf"),
            ("nan-by-model-construct", "MetricNaNConstructed"),
            ("inf-by-mutation", "MetricInfMutated"),
        )
    ),
    Case(
        "metric-text",
        "returns:MetricText",
        failed(
            VALIDATION, matches(_ONE_ERROR + r"metrics\.loss: Input should be a valid number.*")
        ),
        "graders:One",
    ),
    Case(
        "grade-not-wanted",
        "returns:MessageList",
        ok(sample([*HISTORY[:-1], DONE])),
        "graders:One",
        request={"grade": False},
    ),
]
