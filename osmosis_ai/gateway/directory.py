"""Which endpoints are open, which were, and whose token is whose."""

from collections import OrderedDict
from hmac import compare_digest

from osmosis_ai.common.model_calls import Kind
from osmosis_ai.gateway.addresses import Address
from osmosis_ai.gateway.endpoint import Endpoint, token_digest
from osmosis_ai.gateway.errors import ApiError, not_found, rollout_closed

_CLOSED_REMEMBERED = 10_000


type _Key = tuple[str, Kind]


class Directory:
    """The endpoints of one gateway by rollout id and kind."""

    def __init__(self) -> None:
        self._open: dict[_Key, Endpoint] = {}
        self._digests: set[bytes] = set()
        self._closed: OrderedDict[_Key, None] = OrderedDict()

    @property
    def endpoints(self) -> list[Endpoint]:
        """All open endpoints."""
        return list(self._open.values())

    def get(self, rollout_id: str, kind: Kind) -> Endpoint | None:
        """The open endpoint of a rollout."""
        return self._open.get((rollout_id, kind))

    def add(self, endpoint: Endpoint) -> None:
        """Open an endpoint.

        Raises:
            ValueError: the rollout has one of this kind already.
        """
        key = (endpoint.rollout_id, endpoint.kind)
        if key in self._open:
            raise ValueError(
                f"rollout_id {endpoint.rollout_id!r} has an open endpoint already "
                f"(kind {endpoint.kind!r})"
            )
        self._closed.pop(key, None)
        self._open[key] = endpoint
        self._digests.add(endpoint.token_digest)

    def remove(self, endpoint: Endpoint) -> None:
        """Forget an endpoint and remember, for a while, that it was there."""
        key = (endpoint.rollout_id, endpoint.kind)
        if self._open.get(key) is not endpoint:
            return
        del self._open[key]
        self._digests.discard(endpoint.token_digest)
        self._closed[key] = None
        while len(self._closed) > _CLOSED_REMEMBERED:
            self._closed.popitem(last=False)

    def authorize(self, address: Address, authorization: str | None) -> Endpoint:
        """Return the endpoint that this ``Authorization`` header opens.

        Raises:
            ApiError: 404 unknown rollout, 410 closed, 401 no valid token, 403 the token
                of another endpoint.
        """
        rollout_id = address.rollout_id or ""
        key = (rollout_id, address.kind)
        endpoint = self._open.get(key)
        if endpoint is None:
            if key in self._closed:
                raise rollout_closed(rollout_id)
            raise not_found(f"there is no rollout {rollout_id!r} here", code="rollout_not_found")
        scheme, _, token = (authorization or "").partition(" ")
        # Digests make both look-ups independent of how much of a token was guessed.
        offered = token_digest(token.strip()) if scheme.lower() == "bearer" else b""
        if compare_digest(offered, endpoint.token_digest):
            return endpoint
        if offered in self._digests:
            raise ApiError(
                403,
                f"this token belongs to another endpoint than that of rollout {rollout_id!r}",
                kind="permission_error",
                code="wrong_rollout",
                retry=False,
            )
        raise ApiError(
            401,
            f"rollout {rollout_id!r} needs its own token as 'Authorization: Bearer <token>'",
            kind="authentication_error",
            code="invalid_api_key",
            retry=False,
        )
