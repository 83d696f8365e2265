"""How patient the outbox is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OutboxLimits:
    """Seconds and counts of callback delivery.

    Attributes:
        round_attempts: attempts of the first round, which ``post`` waits for.
        first_pause_sec: pause within that round, doubling up to ``round_pause_sec``.
        attempt_sec: one attempt, from connecting to the end of the answer.
        post_sec: how long ``post`` waits at most, queueing included.
        later_pause_sec: pause after the first round, doubling up to ``longest_pause_sec``.
        max_age_sec: a callback older than this is given up.
        per_origin: attempts at once to one scheme, host and port.
        in_all: attempts at once to all of them.
        ack_bytes: answers longer than this are not read to their end.
    """

    round_attempts: int = 5
    first_pause_sec: float = 0.5
    round_pause_sec: float = 8.0
    attempt_sec: float = 10.0
    post_sec: float = 60.0
    later_pause_sec: float = 15.0
    longest_pause_sec: float = 300.0
    max_age_sec: float = 86_400.0
    per_origin: int = 8
    in_all: int = 128
    ack_bytes: int = 16 * 2**20
