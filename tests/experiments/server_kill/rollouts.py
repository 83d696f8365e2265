"""What the callers know of each rollout that they asked for."""

import json
import random
from dataclasses import dataclass, field
from typing import Any, Literal

TERMINAL = frozenset({"success", "failure", "cancelled"})

type Protocol = Literal["polling", "callback"]


@dataclass
class Callback:
    """What a receiver got of one kind of callback."""

    bodies: list[bytes] = field(default_factory=list)
    acknowledged_in: list[int] = field(default_factory=list)

    @property
    def content(self) -> dict[str, Any]:
        """The first body, decoded."""
        found: dict[str, Any] = json.loads(self.bodies[0])
        return found


@dataclass
class Rollout:
    """One rollout, from its request to what came of it.

    Attributes:
        body: the request, the same bytes however often it is sent.
        admitted: a 202 was seen.
        result: the first terminal answer, encoded.
        place: where the rollout was when last heard of.
    """

    id: str
    protocol: Protocol
    rerun: bool
    reward: float
    body: bytes
    admitted: bool = False
    token: str | None = None
    result: bytes | None = None
    place: str | None = None
    callbacks: dict[str, Callback] = field(default_factory=dict)

    @property
    def ended(self) -> dict[str, Any]:
        """The terminal answer, decoded."""
        assert self.result is not None
        found: dict[str, Any] = json.loads(self.result)
        return found


def make_rollout(number: int, callback_url: str, rng: random.Random) -> Rollout:
    """A request of either protocol, that fails or runs again when its server is killed."""
    rollout_id = f"kill-{number:06d}"
    protocol: Protocol = rng.choice(("polling", "callback"))
    rerun = rng.random() < 0.5
    reward = number / 8
    order = {
        "id": rollout_id,
        "run": rng.uniform(0.0, 0.15),
        "grade": rng.uniform(0.0, 0.08),
        "reward": reward,
    }
    body: dict[str, Any] = {
        "rollout_id": rollout_id,
        "initial_messages": [{"role": "user", "content": json.dumps(order)}],
        "label": rollout_id,
        "chat_completions_url": "embedded/echo",
        "on_interrupt": "rerun" if rerun else "fail",
    }
    if protocol == "callback":
        body["completion_callback_url"] = f"{callback_url}/completion/{rollout_id}"
        body["grader_callback_url"] = f"{callback_url}/grader/{rollout_id}"
        body["controller_api_key"] = f"controller-of-{rollout_id}"
    return Rollout(rollout_id, protocol, rerun, reward, json.dumps(body).encode())
