"""The table of all cases. Ids are unique and name the behaviour."""

from tests.conformance.model import Case
from tests.conformance.tables import (
    configs,
    content,
    faults,
    files,
    noise,
    returns,
    rewards,
    sources,
    timing,
    visibility,
)

CASES: list[Case] = [
    *returns.CASES,
    *sources.CASES,
    *rewards.CASES,
    *visibility.CASES,
    *faults.CASES,
    *timing.CASES,
    *content.CASES,
    *noise.CASES,
    *files.CASES,
    *configs.CASES,
]
