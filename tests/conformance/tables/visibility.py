"""Who sees the prompt, the metadata and the label."""

from typing import Any

from tests.conformance.model import LABEL, PROMPT, Case, ok, said, sample

_SECRET = "the-answer-is-7f3a9c-and-nobody-knows"
_NOWHERE = dict.fromkeys(("context", "environment", "argv", "files", "sandbox", "attribute"), False)
_METADATA: dict[str, Any] = {
    "list": [1, 2.5, "three", None, True],
    "nested": {"deep": {"er": []}},
    "text": "ü \U0001f600",
}
_BLOCKS: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "2 + 2"}]}]
_SHOUTED: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "2 + 2!"}]},
    {"role": "assistant", "content": "4"},
]
_ODD_ID = "naïve rollout: №1 \U0001f600"


def _report(rollout_id: str, metadata: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "prompt": PROMPT,
        "metadata": metadata,
        "config": True,
        "artifacts_dir": True,
        "rollout_id": rollout_id,
    }


def _seen(metadata: dict[str, Any] | None, label: str | None = LABEL) -> dict[str, Any]:
    return {
        "seen": {
            "label": label,
            "metadata": metadata,
            "sample_label": label,
            "messages": 1,
            "reward": None,
            "artifacts_dir": True,
        }
    }


_LABEL_METADATA = {"backwards": _SECRET[::-1]}
_CHANGED = {"list": ["as sent"]}

CASES = [
    Case(
        "label-hidden-from-workflow",
        "visibility:SearchesForLabel",
        ok(said(_NOWHERE, label=_SECRET)),
        "graders:Sees",
        ok(said(_NOWHERE, label=_SECRET, reward=1.0, extra_fields=_seen(_LABEL_METADATA, _SECRET))),
        request={"label": _SECRET, "metadata": _LABEL_METADATA},
    ),
    Case(
        "metadata-seen-by-both",
        "visibility:Reports",
        ok(said(_report("metadata-seen-by-both", _METADATA))),
        "graders:Sees",
        ok(
            said(
                _report("metadata-seen-by-both", _METADATA),
                reward=1.0,
                extra_fields=_seen(_METADATA),
            )
        ),
        request={"metadata": _METADATA},
    ),
    Case(
        "metadata-absent",
        "visibility:Reports",
        ok(said(_report("metadata-absent", None))),
        "graders:Sees",
        ok(said(_report("metadata-absent", None), reward=1.0, extra_fields=_seen(None))),
    ),
    Case(
        "metadata-mutation-stays-inside",
        "visibility:MutatesMetadata",
        ok(said(_CHANGED)),
        "graders:Sees",
        ok(said(_CHANGED, reward=1.0, extra_fields=_seen(_CHANGED))),
        request={"metadata": {"list": ["as sent"]}},
        runs=2,
    ),
    Case(
        "prompt-mutation-stays-inside",
        "visibility:MutatesPrompt",
        ok(sample(_SHOUTED)),
        "graders:One",
        ok(sample(_SHOUTED, reward=1.0)),
        request={"prompt": _BLOCKS},
        runs=2,
    ),
    Case(
        "odd-rollout-id",
        "visibility:Reports",
        ok(said(_report(_ODD_ID, None))),
        "graders:Sees",
        ok(said(_report(_ODD_ID, None), reward=1.0, extra_fields=_seen(None))),
        request={"id": _ODD_ID},
    ),
]
