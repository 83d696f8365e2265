"""Gets a rollout admitted, once, although requests and answers may be lost."""

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx

from osmosis_ai.rollout.client.caller import NEVER_SENT, Caller, accepted, parsed, refused
from osmosis_ai.rollout.client.errors import RolloutAdmissionTimeoutError, RolloutProtocolError
from osmosis_ai.rollout.client.retry import BUSY, TOO_MANY, asked_pause_sec, may_pass, retrying
from osmosis_ai.rollout.types.protocol import RolloutInitResponse

_ASKED = "POST /rollout"
_RECOVERY_SEC = 60.0
_FIRST_PAUSE_SEC = 0.25
_READ_SEC = 30.0


@dataclass(frozen=True)
class Admitted:
    """What the server answered.

    Attributes:
        lease: token and windows; ``None`` from a server of the callback
            generation, which gives neither.
        asked_at: loop time before the request, from which the lease counts at
            the earliest.
    """

    rollout_id: str
    lease: RolloutInitResponse | None
    asked_at: float


class Admission:
    """Sends one request, always with the same bytes, until it is admitted or refused."""

    def __init__(
        self, caller: Caller, rollout_id: str, body: bytes, timeout_sec: float | None
    ) -> None:
        self._caller = caller
        self._rollout_id = rollout_id
        self._body = body
        self._now = asyncio.get_running_loop().time
        self._until = None if timeout_sec is None else self._now() + timeout_sec
        self._recover_until: float | None = self._until
        self._lost: Exception | None = None
        """Why it is not known what became of a request that may have arrived."""
        self._problem: Exception | None = None
        """What became of the last request that was not answered."""

    async def run(self) -> Admitted:
        """Ask until there is an answer.

        A request that never left is repeated, and so is one answered 429. One
        whose answer was lost is repeated only if ``/health`` says that the
        server then returns the admission it made.

        Raises:
            RolloutAdmissionTimeoutError: no admission in time, or it is not
                known whether there is one.
            RolloutProtocolError: the server refused it.
            httpx.TransportError: the server cannot be reached, and nothing was sent.
        """
        try:
            async with asyncio.timeout_at(self._until):
                return await self._ask()
        except TimeoutError as exc:
            if isinstance(exc, RolloutAdmissionTimeoutError):
                raise
            raise self._timeout("no admission within admission_timeout_sec") from exc

    async def _ask(self) -> Admitted:
        while True:
            asking = retrying(_FIRST_PAUSE_SEC, when=self._may_recover, sleep=self._recover)
            answer: tuple[float, httpx.Response] = await asking(self._once)
            asked_at, response = answer
            if response.status_code == 202:
                return self._admitted(response, asked_at)
            problem = refused(_ASKED, response)
            if response.status_code != TOO_MANY:
                raise problem
            await asyncio.sleep(asked_pause_sec(problem.retry_after_sec))

    async def _once(self) -> tuple[float, httpx.Response]:
        """Send the request; returns the loop time before it, and an answer that settles it.

        Raises:
            httpx.TransportError: there is no answer.
            RolloutProtocolError: a server, or a proxy, is busy.
        """
        asked_at, lost_before = self._now(), self._lost
        try:
            # Until there is an answer it may have been accepted, also for who is cancelled.
            self._lost = lost_before or TimeoutError("no answer")
            response = await self._caller.post("/rollout", self._body, read_sec=_READ_SEC)
        except NEVER_SENT as exc:
            self._lost, self._problem = lost_before, exc
            raise
        except httpx.TransportError as exc:
            self._lost = self._problem = exc
            raise
        if response.status_code in BUSY:
            # A proxy says this, too, of a request that the server has accepted.
            self._lost = self._problem = refused(_ASKED, response)
            raise self._problem
        if response.status_code == TOO_MANY:
            self._lost = lost_before
        return asked_at, response

    def _may_recover(self, problem: BaseException) -> bool:
        """Whether the problem may pass, and the caller has time for that."""
        unsent = self._lost is None and isinstance(problem, NEVER_SENT)
        return may_pass(problem) and not (unsent and self._until is None)

    async def _recover(self, pause_sec: float) -> None:
        """Return after a pause, when the request may be repeated.

        Raises:
            RolloutAdmissionTimeoutError, RolloutProtocolError: it may not.
        """
        await asyncio.sleep(pause_sec)
        if self._lost is None:
            return
        if self._recover_until is None:
            self._recover_until = self._now() + _RECOVERY_SEC
        problem = self._problem
        try:
            async with asyncio.timeout_at(self._recover_until):
                repeatable = await self._repeatable()
        except TimeoutError as exc:
            raise self._timeout(f"the server does not recover from {problem!r}") from exc
        if not repeatable and isinstance(problem, RolloutProtocolError):
            raise problem
        if not repeatable:
            raise self._timeout(f"the answer was lost ({problem!r})")

    async def _repeatable(self) -> bool:
        """Whether the server returns the admission it made to the same request again."""
        try:
            health: dict[str, Any] = await retrying(_FIRST_PAUSE_SEC)(self._caller.health)
        except RolloutProtocolError:
            return False
        return health.get("idempotent_admission") is True

    def _admitted(self, response: httpx.Response, asked_at: float) -> Admitted:
        answer = accepted(_ASKED, response, 202)
        if "polling_lease_token" not in answer:
            return Admitted(self._rollout_id, None, asked_at)
        lease = parsed(RolloutInitResponse, _ASKED, answer, 202)
        return Admitted(self._rollout_id, lease, asked_at)

    def _timeout(self, why: str) -> RolloutAdmissionTimeoutError:
        lost = self._lost is not None
        hint = (
            "it may have been accepted and be running, until its lease ends unpolled; use a new "
            "id, or cancel it if nobody else uses this one"
            if lost
            else "it was not accepted"
        )
        return RolloutAdmissionTimeoutError(
            f"rollout {self._rollout_id!r}: {why}; {hint}", may_be_running=lost
        )
