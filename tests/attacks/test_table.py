"""The documentation says of each attack what the tests hold it to."""

from tests.attacks.catalogue import Verdict, forgeries, probes
from tests.attacks.table import table, written


def test_the_table_is_the_catalogue() -> None:
    assert written() == table(), "run `python -m tests.attacks.table`"


def test_what_is_open_has_a_reason() -> None:
    attacks = [*forgeries(), *probes()]
    assert len({attack.name for attack in attacks}) == len(attacks) >= 60
    assert [a.name for a in attacks if Verdict.OPEN in a.verdicts.values() and not a.reason] == []
