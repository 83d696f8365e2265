"""What a workflow and a grader see, and the context that routes model calls."""

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from osmosis_ai.rollout.types.config import AgentWorkflowConfig
from osmosis_ai.rollout.types.messages import Messages
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutStatus

if TYPE_CHECKING:
    from osmosis_ai.gateway import Endpoint

logger = logging.getLogger(__name__)

CHAT_COMPLETIONS_URL_ENV = "OSMOSIS_CHAT_COMPLETIONS_URL"
API_KEY_ENV = "OSMOSIS_API_KEY"
ROLLOUT_ID_ENV = "OSMOSIS_ROLLOUT_ID"


@dataclass
class AgentWorkflowContext[TConfig: AgentWorkflowConfig]:
    """The input of one workflow run; the reference answer is never in it.

    ``artifacts_dir`` is ``None`` where no writable directory could be had.
    """

    prompt: Messages
    config: TConfig | None = None
    metadata: dict[str, Any] | None = None
    artifacts_dir: Path | None = None


@dataclass(frozen=True)
class ModelEndpoint:
    """An OpenAI-compatible endpoint: its base URL (``…/v1``) and the key to send."""

    url: str
    api_key: str | None = field(default=None, repr=False)


@dataclass
class GraderContext:
    """The input of one grading, and the way to set the reward.

    ``judge`` is the model that grades may ask, where the backend has one; its
    calls are recorded apart from the policy's. The rollout context during
    grading routes to it too, so the agent integrations work as judges.
    """

    label: str | None = None
    sample: RolloutSample | None = None
    project_path: str | None = None
    metadata: dict[str, Any] | None = None
    artifacts_dir: Path | None = None
    judge: ModelEndpoint | None = None

    def set_reward(self, reward: float) -> None:
        """Set the sample's reward.

        Raises:
            ValueError: there is no sample to reward.
            pydantic.ValidationError: the reward is not a finite number.
        """
        if self.sample is None:
            raise ValueError("There is no sample to reward: the rollout collected none")
        self.sample.reward = reward


class SampleSource(ABC):
    """Where the sample comes from when ``run()`` returns ``None``."""

    @abstractmethod
    async def get_sample(self) -> RolloutSample:
        """Return the conversation as a sample."""

    async def get_preview(self, max_messages: int) -> RolloutSample | None:
        """Return an isolated copy of at most ``max_messages`` latest messages, or ``None``."""
        return None


class RolloutProgress:
    """A rollout's status that tasks can wait on. A terminal status never changes.

    ``observer`` is called with every new status; what it raises is logged.
    ``pushed`` says that the backend reports its status here by itself.
    """

    def __init__(
        self,
        status: RolloutStatus = RolloutStatus.QUEUED,
        observer: Callable[[RolloutStatus], None] | None = None,
    ) -> None:
        self.status = status
        self.pushed = False
        self._observer = observer
        self._changed = asyncio.Event()

    def set_status(self, status: RolloutStatus) -> None:
        """Move to ``status`` and wake every waiter; ignored when nothing changes."""
        if status is self.status or self.status.is_terminal:
            return
        self.status = status
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        if self._observer is not None:
            try:
                self._observer(status)
            except Exception:
                logger.exception("An observer of a rollout's status failed at %s", status.value)

    async def wait_for_status_change(self, known: RolloutStatus) -> RolloutStatus:
        """Return the status as soon as it differs from ``known``."""
        while self.status is known:
            await self._changed.wait()
        return self.status


rollout_contextvar: ContextVar["RolloutContext | None"] = ContextVar(
    "rollout_context", default=None
)
_outer_contexts: ContextVar[tuple["RolloutContext | None", ...]] = ContextVar(
    "outer_rollout_contexts", default=()
)


def get_rollout_context() -> "RolloutContext | None":
    """Return the active rollout context, or ``None`` outside a rollout."""
    return rollout_contextvar.get()


@dataclass
class RolloutContext:
    """Routes model calls of one rollout and holds its sample source.

    ``chat_completions_url`` is an OpenAI-style base URL (clients append
    ``/chat/completions``). ``endpoint`` is the gateway's endpoint for the rollout:
    backends serve sandboxes from it and report its calls. Empty values fall back
    to the endpoint's, then to the environment variables named in this module. Use
    it as a context manager; leaving it restores the context that was active before.
    """

    chat_completions_url: str = ""
    api_key: str | None = None
    rollout_id: str = ""
    sample_source: SampleSource | None = None
    progress: RolloutProgress | None = None
    process_id: str | None = None
    preview_path: Path | None = None
    preview_enabled: bool = True
    endpoint: "Endpoint | None" = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.endpoint is not None:
            self.chat_completions_url = self.chat_completions_url or self.endpoint.local_url
            self.api_key = self.api_key or self.endpoint.token
        self.chat_completions_url = self.chat_completions_url or os.environ.get(
            CHAT_COMPLETIONS_URL_ENV, ""
        )
        self.api_key = self.api_key or os.environ.get(API_KEY_ENV)
        self.rollout_id = self.rollout_id or os.environ.get(ROLLOUT_ID_ENV, "")

    def __repr__(self) -> str:
        key = "set" if self.api_key else "unset"
        return (
            f"RolloutContext(rollout_id={self.rollout_id!r}, "
            f"chat_completions_url={self.chat_completions_url!r}, api_key=<{key}>)"
        )

    def __enter__(self) -> Self:
        # What to restore belongs to the task: several tasks may hold one context at once.
        _outer_contexts.set((*_outer_contexts.get(), rollout_contextvar.get()))
        rollout_contextvar.set(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        *rest, outer = _outer_contexts.get()
        _outer_contexts.set(tuple(rest))
        rollout_contextvar.set(outer)

    def set_sample_source(self, source: SampleSource) -> None:
        """Register where this rollout's sample comes from.

        Raises:
            ValueError: another source is registered; a rollout has one sample.
        """
        if self.sample_source is not None:
            raise ValueError(
                f"Rollout {self.rollout_id!r} already has a sample source "
                f"({type(self.sample_source).__name__}): a rollout yields one sample, so "
                "register one agent or session per run()"
            )
        self.sample_source = source

    async def get_sample(self) -> RolloutSample | None:
        """Return the registered source's sample, or ``None`` without a source."""
        if self.sample_source is None:
            return None
        return await self.sample_source.get_sample()
