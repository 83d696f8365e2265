"""Admits rollouts: stored before the answer, and once however often they are asked for."""

import asyncio
from dataclasses import dataclass

from osmosis_ai.rollout.server.context import ServerContext
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.request_rules import check_names
from osmosis_ai.rollout.server.route_check import RouteCheck
from osmosis_ai.rollout.server.run import RolloutIdentity
from osmosis_ai.rollout.server.runner import Runner
from osmosis_ai.rollout.server.stored_request import SerializedRequest, serialize
from osmosis_ai.rollout.server.tasks import Tasks
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus

RETRY_AFTER = {"Retry-After": "5"}


@dataclass(frozen=True)
class AdmissionAnswer:
    """What a caller learns of its admission: where the rollout is, and the token of its lease."""

    rollout_id: str
    status: RolloutStatus
    token: str


@dataclass(frozen=True)
class _Underway:
    fingerprint: bytes
    task: asyncio.Task[AdmissionAnswer]


class Admitter:
    """Admits rollouts to one server."""

    def __init__(self, context: ServerContext, runner: Runner) -> None:
        self._context = context
        self._store = context.store
        self._backend = context.backend
        self._routes = RouteCheck(context.gateway)
        self._runner = runner
        self._underway: dict[str, _Underway] = {}
        self._tasks = Tasks(awaited=True)
        self.accepting = True

    @property
    def underway(self) -> set[str]:
        """Ids that may be stored and do not run yet."""
        return set(self._underway)

    async def admit(self, request: RolloutInitRequest) -> AdmissionAnswer:
        """Start a rollout, or return the admission of the very same request again.

        Raises:
            RefusedError: 409 the id is taken, 422 it cannot be run or kept, 429
                no capacity, 503 shutting down.
            StoreUnavailableError: nothing was admitted.
        """
        serialized = serialize(request, self._store.keys)
        run = self._runner.find(request.rollout_id)
        if run is not None:
            _check_same(serialized, run.identity.fingerprint)
            return self._answer(request.rollout_id, run.watch.status, run.identity.nonce)
        underway = self._underway.get(request.rollout_id)
        if underway is not None:
            _check_same(serialized, underway.fingerprint)
            return await asyncio.shield(underway.task)
        # A caller that leaves must not leave a rollout that is stored and does not run.
        task = self._tasks.start(self._admit(serialized))
        if task.done():
            return task.result()
        self._underway[request.rollout_id] = _Underway(serialized.fingerprint, task)
        task.add_done_callback(lambda _: self._underway.pop(request.rollout_id, None))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Admit no more, and wait for what is under way."""
        self.accepting = False
        await self._tasks.wait(None)

    async def _admit(self, serialized: SerializedRequest) -> AdmissionAnswer:
        request = serialized.request
        if not self.accepting:
            problem = "the server is not accepting rollouts: it is shutting down"
            return await self._replay(serialized, RefusedError(503, problem))
        check_names(request)
        try:
            await self._routes.check(request)
        except ValueError as exc:
            raise RefusedError(422, f"chat_completions_url, llm_api_key or id: {exc}") from exc
        if not self._backend.has_capacity():
            return await self._replay(serialized, _no_capacity())
        lease_sec = self._context.settings.windows.lease
        row = serialized.row(self._store.keys, self._context.server_id, lease_sec)
        number = await self._store.admit(row)
        if number is None:
            taken = f"rollout_id {request.rollout_id!r} was taken; ask again"
            return await self._replay(serialized, RefusedError(409, taken))
        # The backend counts a rollout as it begins, so nothing may come between these two.
        if not (self._backend.has_capacity() and self.accepting):
            await self._store.withdraw(number)
            raise _no_capacity()
        identity = RolloutIdentity(number, row.fingerprint, row.nonce, row.digest)
        self._runner.start(request, identity)
        return self._answer(row.id, RolloutStatus.QUEUED, row.nonce)

    async def _replay(
        self, serialized: SerializedRequest, refusal: RefusedError
    ) -> AdmissionAnswer:
        """Return the admission that the store has of this very request, or refuse."""
        rollout_id = serialized.request.rollout_id
        record = await self._store.find(rollout_id)
        if record is None:
            raise refusal
        _check_same(serialized, record.fingerprint)
        ours = record.owner == self._context.server_id and not record.finished
        if ours and self.accepting and self._runner.find(rollout_id) is None:
            # Its admission was stored, and the answer of the store was lost.
            self._runner.start(serialized.request, RolloutIdentity.of(record))
        return self._answer(rollout_id, record.status, record.nonce)

    def _answer(self, rollout_id: str, status: RolloutStatus, nonce: bytes) -> AdmissionAnswer:
        return AdmissionAnswer(rollout_id, status, self._store.keys.token(nonce))


def _check_same(serialized: SerializedRequest, known: bytes) -> None:
    """Refuse another request for the id of a rollout that the fingerprint ``known`` is of."""
    if serialized.fingerprint != known:
        raise RefusedError(
            409,
            f"rollout_id {serialized.request.rollout_id!r} belongs to another rollout, in flight "
            "or with its result still kept; send another id",
        )


def _no_capacity() -> RefusedError:
    return RefusedError(429, "no capacity for another rollout now", RETRY_AFTER)
