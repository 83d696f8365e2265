"""Getting a rollout admitted, once."""

import asyncio
from dataclasses import dataclass

import httpx

from osmosis_ai.rollout.client.caller import BUSY, NEVER_SENT, Caller, accepted, parsed, refused
from osmosis_ai.rollout.client.errors import RolloutAdmissionTimeoutError, RolloutProtocolError
from osmosis_ai.rollout.client.pauses import pauses, retry_after_sec
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
    """One request until it is admitted. The same bytes go out each time they do."""

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
        waits = pauses(_FIRST_PAUSE_SEC)
        while True:
            asked_at = self._now()
            lost_before = self._lost
            try:
                # Until there is an answer it may have been accepted, also for who is cancelled.
                self._lost = lost_before or TimeoutError("no answer")
                response = await self._caller.post("/rollout", self._body, read_sec=_READ_SEC)
            except NEVER_SENT as exc:
                self._lost = lost_before
                if self._until is None and lost_before is None:
                    raise
                await self._recover(exc, next(waits))
                continue
            except httpx.TransportError as exc:
                self._lost = exc
                await self._recover(exc, next(waits))
                continue
            if response.status_code == 202:
                return self._admitted(response, asked_at)
            problem = refused(_ASKED, response)
            if response.status_code == 429:
                self._lost = lost_before
                await asyncio.sleep(retry_after_sec(response.headers.get("Retry-After")))
            elif response.status_code in BUSY:
                # A proxy says this, too, of a request that the server has accepted.
                self._lost = problem
                await self._recover(problem, next(waits))
            else:
                raise problem

    async def _recover(self, problem: Exception, pause: float) -> None:
        """Return when the request may be repeated.

        Raises:
            RolloutAdmissionTimeoutError: it may not.
        """
        await asyncio.sleep(pause)
        if self._lost is None:
            return
        if self._recover_until is None:
            self._recover_until = self._now() + _RECOVERY_SEC
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
        for pause in pauses(_FIRST_PAUSE_SEC):
            try:
                health = await self._caller.health()
            except httpx.TransportError:
                pass
            except RolloutProtocolError as exc:
                if exc.status_code not in BUSY:
                    return False
            else:
                return health.get("idempotent_admission") is True
            await asyncio.sleep(pause)
        raise AssertionError("pauses do not end")

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
