"""Which rollouts are open, which were, and whose token is whose."""

from collections import OrderedDict
from hashlib import sha256
from hmac import compare_digest

from osmosis_ai.gateway.endpoint import Endpoint
from osmosis_ai.gateway.errors import ApiError, not_found, rollout_closed

_CLOSED_REMEMBERED = 10_000


class Directory:
    """The endpoints of one gateway by rollout id."""

    def __init__(self) -> None:
        self._open: dict[str, Endpoint] = {}
        self._digests: set[bytes] = set()
        self._closed: OrderedDict[str, None] = OrderedDict()

    @property
    def endpoints(self) -> list[Endpoint]:
        """All open endpoints."""
        return list(self._open.values())

    def get(self, rollout_id: str) -> Endpoint | None:
        """The open endpoint of a rollout."""
        return self._open.get(rollout_id)

    def add(self, endpoint: Endpoint) -> None:
        """Open an endpoint.

        Raises:
            ValueError: the rollout has one already.
        """
        if endpoint.rollout_id in self._open:
            raise ValueError(f"rollout_id {endpoint.rollout_id!r} has an open endpoint already")
        self._closed.pop(endpoint.rollout_id, None)
        self._open[endpoint.rollout_id] = endpoint
        self._digests.add(_digest(endpoint.token))

    def remove(self, endpoint: Endpoint) -> None:
        """Forget an endpoint and remember, for a while, that it was there."""
        del self._open[endpoint.rollout_id]
        self._digests.discard(_digest(endpoint.token))
        self._closed[endpoint.rollout_id] = None
        while len(self._closed) > _CLOSED_REMEMBERED:
            self._closed.popitem(last=False)

    def authorize(self, rollout_id: str, authorization: str | None) -> Endpoint:
        """Return the endpoint that this ``Authorization`` header opens.

        Raises:
            ApiError: 404 unknown rollout, 410 closed, 401 no valid token, 403 the token
                of another rollout.
        """
        endpoint = self._open.get(rollout_id)
        if endpoint is None:
            if rollout_id in self._closed:
                raise rollout_closed(rollout_id)
            raise not_found(f"there is no rollout {rollout_id!r} here", code="rollout_not_found")
        scheme, _, token = (authorization or "").partition(" ")
        # Digests make both look-ups independent of how much of a token was guessed.
        offered = _digest(token.strip()) if scheme.lower() == "bearer" else b""
        if compare_digest(offered, _digest(endpoint.token)):
            return endpoint
        if offered in self._digests:
            raise ApiError(
                403,
                f"this token belongs to another rollout than {rollout_id!r}",
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


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", errors="surrogateescape")).digest()
