"""Taking rollouts in: stored before the answer, and once for equal requests."""

import asyncio
from dataclasses import dataclass

from osmosis_ai.gateway.gateway import Gateway
from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.server.admission import Admission, check_names, take_apart
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.route_check import RouteCheck
from osmosis_ai.rollout.server.run import Admitted
from osmosis_ai.rollout.server.runner import Runner
from osmosis_ai.rollout.server.settings import Settings
from osmosis_ai.rollout.server.store import Store
from osmosis_ai.rollout.server.tasks import Tasks
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus

RETRY_AFTER = {"Retry-After": "5"}


@dataclass(frozen=True)
class Taken:
    """An admission to answer: where the rollout is, and the token of its lease."""

    rollout_id: str
    status: RolloutStatus
    token: str


@dataclass(frozen=True)
class _Underway:
    fingerprint: bytes
    task: asyncio.Task[Taken]


class Admitting:
    """Admits rollouts to one server."""

    def __init__(
        self,
        server: str,
        settings: Settings,
        backend: ExecutionBackend,
        gateway: Gateway,
        store: Store,
        runner: Runner,
    ) -> None:
        self._server = server
        self._settings = settings
        self._backend = backend
        self._routes = RouteCheck(gateway)
        self._store = store
        self._runner = runner
        self._underway: dict[str, _Underway] = {}
        self._tasks = Tasks(awaited=True)
        self.accepting = True

    async def admit(self, request: RolloutInitRequest) -> Taken:
        """Start a rollout, or return the admission of the very same request again.

        Raises:
            RefusedError: 409 the id is taken, 422 it cannot be run or kept, 429
                no capacity, 503 shutting down.
            StoreUnavailableError: nothing was admitted.
        """
        admission = take_apart(request, self._store.keys)
        run = self._runner.find(request.rollout_id)
        if run is not None:
            self._check(request, admission, run.admitted.fingerprint)
            return self._taken(request, run.watch.status, run.admitted.nonce)
        underway = self._underway.get(request.rollout_id)
        if underway is not None:
            self._check(request, admission, underway.fingerprint)
            return await asyncio.shield(underway.task)
        # A caller that leaves must not leave a rollout that is stored and does not run.
        task = self._tasks.start(self._admit(request, admission))
        if task.done():
            return task.result()
        self._underway[request.rollout_id] = _Underway(admission.fingerprint, task)
        try:
            return await asyncio.shield(task)
        finally:
            if task.done():
                self._underway.pop(request.rollout_id, None)
            else:
                task.add_done_callback(lambda _: self._underway.pop(request.rollout_id, None))

    async def close(self) -> None:
        """Admit no more, and wait for what is under way."""
        self.accepting = False
        await self._tasks.wait(None)

    async def _admit(self, request: RolloutInitRequest, admission: Admission) -> Taken:
        if not self.accepting:
            known = await self._replayed(request, admission)
            if known is None:
                raise RefusedError(503, "the server is not accepting rollouts: it is shutting down")
            return known
        check_names(request)
        try:
            await self._routes.check(request)
        except ValueError as exc:
            raise RefusedError(422, f"chat_completions_url, llm_api_key or id: {exc}") from exc
        if not self._backend.has_capacity():
            return await self._replayed(request, admission) or _no_capacity()
        row = admission.row(self._store.keys, self._server, self._settings.windows.lease)
        number = await self._store.admit(row)
        if number is None:
            known = await self._replayed(request, admission)
            if known is None:
                raise RefusedError(409, f"rollout_id {request.rollout_id!r} was taken; ask again")
            return known
        # The backend counts a rollout as it begins, so nothing may come between these two.
        if not (self._backend.has_capacity() and self.accepting):
            await self._store.withdraw(request.rollout_id, number)
            _no_capacity()
        self._runner.start(request, Admitted(number, row.fingerprint, row.nonce, row.digest))
        return self._taken(request, RolloutStatus.QUEUED, row.nonce)

    async def _replayed(self, request: RolloutInitRequest, admission: Admission) -> Taken | None:
        record = await self._store.find(request.rollout_id)
        if record is None:
            return None
        self._check(request, admission, record.fingerprint)
        if record.owner == self._server and not record.finished and self.accepting:
            # Its admission was stored, and the answer of the store was lost.
            admitted = Admitted(
                record.number, record.fingerprint, record.nonce, record.digest, record.attempt
            )
            if self._runner.find(request.rollout_id) is None:
                self._runner.start(request, admitted)
        return self._taken(request, record.status, record.nonce)

    @property
    def underway(self) -> set[str]:
        """Ids that may be stored and do not run yet."""
        return set(self._underway)

    def _taken(self, request: RolloutInitRequest, status: RolloutStatus, nonce: bytes) -> Taken:
        return Taken(request.rollout_id, status, self._store.keys.token(nonce))

    def _check(self, request: RolloutInitRequest, admission: Admission, known: bytes) -> None:
        if admission.fingerprint != known:
            raise RefusedError(
                409,
                f"rollout_id {request.rollout_id!r} belongs to another rollout, in flight or "
                "with its result still kept; send another id",
            )


def _no_capacity() -> Taken:
    raise RefusedError(429, "no capacity for another rollout now", RETRY_AFTER)
