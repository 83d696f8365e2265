"""What the server refuses, as an HTTP answer."""

from collections.abc import Mapping


class RefusedError(Exception):
    """A request that gets an answer of its own instead of a result.

    Attributes:
        status_code: the HTTP status.
        detail: why, and what to do.
        headers: added to the answer.
    """

    def __init__(
        self, status_code: int, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status_code = status_code
        self.detail = detail
        self.headers = dict(headers or {})
