"""What the gateway refuses or cannot do, in the shape OpenAI clients understand."""

from typing import Any


class GatewayError(Exception):
    """Base of every error that the gateway raises itself."""


class ApiError(GatewayError):
    """A call that ends in an error answer.

    Attributes:
        status: the HTTP status for the caller.
        kind: OpenAI's ``error.type``.
        code: OpenAI's ``error.code``, stable and meant for programs.
        retry: what to tell clients about retrying; ``None`` leaves it to them.
        told: what the sandbox is told instead of the message, which is the operator's.
        limit: the field of ``GatewayLimits`` that was exceeded, if one was.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str,
        code: str,
        retry: bool | None = None,
        limit: str | None = None,
        told: str | None = None,
    ) -> None:
        super().__init__(message)
        self.told = told or message
        self.status = status
        self.message = message
        self.kind = kind
        self.code = code
        self.retry = retry
        self.limit = limit

    def body(self) -> dict[str, Any]:
        """The error object of an answer or of a stream's last event."""
        return {"error": {"message": self.told, "type": self.kind, "code": self.code}}


class UpstreamError(ApiError):
    """The model server did not give a usable answer, although it may have been asked."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 502,
        code: str,
        retry: bool | None = None,
        limit: str | None = None,
        told: str | None = None,
    ) -> None:
        super().__init__(
            status, message, kind="upstream_error", code=code, retry=retry, limit=limit, told=told
        )


def bad_request(message: str, *, code: str = "invalid_request") -> ApiError:
    """The caller's body is wrong; sending it again will not help."""
    return ApiError(400, message, kind="invalid_request_error", code=code, retry=False)


def not_found(message: str, *, code: str = "not_found") -> ApiError:
    """There is nothing at this address."""
    return ApiError(404, message, kind="invalid_request_error", code=code, retry=False)


def rollout_closed(rollout_id: str) -> ApiError:
    """The rollout ended, and its endpoint with it."""
    return ApiError(
        410,
        f"rollout {rollout_id!r} is closed: its model endpoint ended with the rollout",
        kind="invalid_request_error",
        code="rollout_closed",
        retry=False,
    )
