"""Each module is one way to be a bad caller."""

from tests.experiments.server_hostile.attacks.bad_receivers import bad_receivers
from tests.experiments.server_hostile.attacks.bad_text import bad_text
from tests.experiments.server_hostile.attacks.base import Attack
from tests.experiments.server_hostile.attacks.huge_bodies import huge_bodies
from tests.experiments.server_hostile.attacks.idle_polls import idle_polls
from tests.experiments.server_hostile.attacks.slow_bodies import slow_bodies
from tests.experiments.server_hostile.attacks.wrong_tokens import wrong_tokens

ATTACKS: dict[str, Attack] = {
    "slow-bodies": slow_bodies,
    "huge-bodies": huge_bodies,
    "bad-text": bad_text,
    "wrong-tokens": wrong_tokens,
    "idle-polls": idle_polls,
    "bad-receivers": bad_receivers,
}

__all__ = ["ATTACKS"]
