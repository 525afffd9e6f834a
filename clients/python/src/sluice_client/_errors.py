"""What the client raises."""


class SluiceError(Exception):
    """Sluice rejected a request, for example for its token. To send it again does not help."""

    def __init__(self, message: str, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The status of the answer; None if there was none."""
        self.code = code
        """Names the error, such as `KEY_FULL`: see the table of errors. None if there was no answer with one."""


class SluiceDeniedError(SluiceError):
    """Sluice denied a permit."""

    def __init__(self, key: str, retry_after: int, limit: str | None) -> None:
        super().__init__("rate limit exceeded", 429, "RATE_LIMIT_EXCEEDED")
        self.key = key
        self.retry_after = retry_after
        """In seconds, until there may be room."""
        self.limit = limit
        """The name of the limit that has too little left, if the key has several limits."""


class SluicePermitLostError(SluiceError):
    """A permit no longer counts, although its block goes on. The cause says why its last renewal failed, if it did."""

    def __init__(self, key: str, request_id: str) -> None:
        super().__init__("the permit no longer counts")
        self.key = key
        self.request_id = request_id


class SluiceUnavailableError(SluiceError):
    """There is no decision: Sluice is unreachable, its answer was lost, or it can't decide now."""

    def __init__(
        self,
        message: str,
        counted: bool,
        status: int | None = None,
        retry_after: int | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message, status, code)
        self.may_have_counted = counted
        """Whether the request may still have taken effect."""
        self.retry_after = retry_after
        """When Sluice asks to try again, in seconds, if it does."""


class SluiceTimeoutError(SluiceUnavailableError):
    """There was no answer within `timeout`."""
