"""One trial while it lives, and how Harbor's plug-ins find it.

Agents, environments and verifiers are made by Harbor from a configuration that
is written to disk. They get a key in it, and find here what must not be there.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from harbor_backend.core.results import SandboxWait, TrialResults
from harbor_backend.core.spec import TrialSpec
from osmosis_ai.common.observer import observer

if TYPE_CHECKING:
    from osmosis_ai.rollout.backend.live import LiveRollout


@dataclass(frozen=True)
class Lendable[T]:
    """A name under which a place lends something to a trial's environments."""

    name: str


class Trial:
    """One trial: what is to be done, what came of it so far, and what its place lends it.

    ``rollout`` is whose trial it is, and ``observer`` hears how it goes on.
    ``submitted_at`` is a monotonic time, set by whoever gives it to the queue;
    ``agent_runs`` says, by the hooks, whether it is in the agent's phase, and
    ``agent_began`` when the first of these began, a monotonic time.
    """

    def __init__(self, spec: TrialSpec, rollout: "LiveRollout") -> None:
        self.key = uuid.uuid4().hex
        self.spec = spec
        self.rollout = rollout
        self.observer = observer()
        self.submitted_at = time.monotonic()
        self.results = TrialResults()
        for note in spec.task.notes:
            self.results.note(note)
        self.sandbox_wait = SandboxWait()
        self.agent_runs = False
        self.agent_began: float | None = None
        self._lent: dict[Lendable[Any], Any] = {}
        self._has_agent = False

    def lend[T](self, kind: Lendable[T], what: T) -> None:
        """Give this trial's environments something of their place."""
        self._lent[kind] = what

    def lent[T](self, kind: Lendable[T]) -> T:
        """What the place lent under this name.

        Raises:
            LookupError: nothing: the environment belongs to another place.
        """
        if kind not in self._lent:
            raise LookupError(f"the place of trial {self.spec.name} lends no {kind.name}")
        found: T = self._lent[kind]
        return found

    @property
    def spares_processes(self) -> bool:
        """Whether a command's end by deadline leaves what it started: the task's tests may need it.

        So do Harbor's own environments, which end nothing in a sandbox.
        """
        return self.agent_runs and self.spec.is_graded_by_task

    def claim_agent_role(self) -> bool:
        """Whether the caller's environment is the agent's: the first that Harbor makes is."""
        is_first, self._has_agent = not self._has_agent, True
        return is_first


class TrialRegistry:
    """The trials of one backend while they live, by the names that Harbor reports."""

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}

    @contextmanager
    def living(self, trial: Trial) -> Iterator[None]:
        """Let Harbor's plug-ins and hooks find the trial while the block runs."""
        self._trials[trial.spec.name] = trial
        _by_key[trial.key] = trial
        try:
            yield
        finally:
            del self._trials[trial.spec.name]
            _by_key.pop(trial.key, None)

    def named(self, name: str) -> Trial | None:
        """The living trial of this name; ``None`` for another backend's on the same queue."""
        return self._trials.get(name)


_by_key: WeakValueDictionary[str, Trial] = WeakValueDictionary()
"""An index over all registries: a plug-in has a key and nothing else. It keeps nothing alive."""


def find_trial(key: str) -> Trial:
    """Return the living trial with this key.

    Raises:
        RuntimeError: there is none; the plug-ins work under ``HarborBackend`` only.
    """
    try:
        return _by_key[key]
    except KeyError:
        raise RuntimeError(
            "This Harbor plug-in belongs to a HarborBackend in the same process, and its trial "
            "has ended or never began"
        ) from None
