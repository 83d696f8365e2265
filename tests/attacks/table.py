"""The table of docs/security.md: ``python -m tests.attacks.table`` writes it anew."""

from collections.abc import Iterable
from pathlib import Path

from tests.attacks.catalogue import Attack, forgeries, probes

DOCS = Path(__file__).parents[2] / "docs" / "security.md"
_BEGIN, _END = "<!-- attacks -->\n", "<!-- /attacks -->\n"


def table() -> str:
    """What the documentation says of every attack."""
    return "\n".join([*_rows(forgeries()), "", *_rows(probes())]) + "\n"


def written() -> str:
    """What it says now."""
    return DOCS.read_text().partition(_BEGIN)[2].partition(_END)[0]


def _rows(attacks: Iterable[Attack]) -> Iterable[str]:
    found = list(attacks)
    levels = list(found[0].verdicts)
    yield f"| | what it is after | {' | '.join(levels)} | |"
    yield f"|---|---|{'---|' * len(levels)}---|"
    for one in sorted(found, key=lambda one: (one.kind, one.name)):
        verdicts = " | ".join(one.verdicts.values())
        yield f"| {one.kind} | {one.wants} | {verdicts} | {one.reason} |"


if __name__ == "__main__":
    head, _, rest = DOCS.read_text().partition(_BEGIN)
    DOCS.write_text(head + _BEGIN + table() + _END + rest.partition(_END)[2])
