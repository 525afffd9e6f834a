"""When a wait that keeps its place is sent again after a failure."""

import math
from time import monotonic

from ._errors import SluiceUnavailableError
from ._retries import concerns_address, pause_seconds

# A replica that stops answers so, and keeps the places of its waiters.
HANDED_OVER = "shutting down; another replica has the place"

# The longest pause is a small part of the time for which a place is kept.
LONGEST_PAUSE_SECONDS = 2.7


class KeptRetries:
    """Each address is asked before a pause. The wait goes on while its place may be kept, and `retries` times anyway."""

    def __init__(self, keep_seconds: float, retries: int, addresses: int) -> None:
        self._keep_seconds = keep_seconds
        self._retries = retries
        self._addresses = addresses
        self._may_have_place = False
        self.placed()

    def placed(self) -> None:
        """Sluice has answered, so that nothing fails now."""
        self._failing_since = math.inf
        # How many addresses have failed since the last pause.
        self._failures = 0
        self._pauses = 0

    def pause_after(self, error: SluiceUnavailableError) -> float:
        """How many seconds later the wait is sent again. Raises the error if it must not be."""
        is_handed_over = str(error) == HANDED_OVER
        now = monotonic()
        self._failing_since = now if is_handed_over else min(self._failing_since, now)
        self._may_have_place = self._may_have_place or error.may_have_counted
        self._failures += 1
        is_of_address = is_handed_over or error.status is None or concerns_address(error)
        # One address may be that of several replicas.
        addresses = max(self._addresses, 2 if is_handed_over else 1)
        if is_of_address and self._failures < addresses:
            return 0.0
        pause = pause_seconds(error, self._pauses, LONGEST_PAUSE_SECONDS)
        is_kept = self._may_have_place and now + pause < self._failing_since + self._keep_seconds
        if self._pauses >= self._retries and not is_kept:
            raise error
        self._failures = 0
        self._pauses += 1
        return pause
