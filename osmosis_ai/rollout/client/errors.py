"""What can go wrong between a trainer and a rollout server."""


class RolloutProtocolError(RuntimeError):
    """The server answered, but not as the protocol says.

    Attributes:
        status_code: the HTTP status of the answer.
        retry_after_sec: how long the answer asks to wait; ``None`` when it does not say.
    """

    def __init__(
        self, message: str, *, status_code: int, retry_after_sec: float | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.retry_after_sec = retry_after_sec


class RolloutAdmissionTimeoutError(TimeoutError):
    """No admission could be had, in time or at all.

    Attributes:
        may_be_running: whether the server may have accepted the rollout while
            its answer was lost. It is neither cancelled nor sent again: with
            the same id another caller's rollout could be meant. Without polls
            it ends with its lease.
    """

    def __init__(self, message: str, *, may_be_running: bool) -> None:
        super().__init__(message)
        self.may_be_running = may_be_running


class RolloutUnreachableError(ConnectionError):
    """A server that admitted the rollout did not answer until its lease must have run out.

    A server that keeps results over restarts may still have one: pass the
    handle's ``admission`` to ``RolloutClient.resume``.
    """
