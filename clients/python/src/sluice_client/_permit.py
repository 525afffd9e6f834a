"""The permit of a block, and when it is renewed."""

import os
from collections.abc import Callable
from time import monotonic
from typing import Literal

from ._errors import SluiceError, SluicePermitLostError

OnReleaseError = Callable[[SluiceError], None]

# So that a hold outlasts the failure of one renewal.
RENEWALS_PER_HOLD = 3
# After a failure, the next renewal comes sooner, since an outage may end at any time.
RETRIES_PER_HOLD = 15


class Permit:
    """The permit of a block that runs."""

    def __init__(self, key: str, request_id: str, on_release_error: OnReleaseError | None = None) -> None:
        self.key = key
        self.request_id = request_id
        self._on_release_error = on_release_error
        self._lost: SluicePermitLostError | None = None
        self._is_over = False
        # Ends the step of the work that is under way.
        self._on_lost: Callable[[], object] | None = None
        self._pid = os.getpid()

    @property
    def _is_inherited(self) -> bool:
        """Whether it is the permit of the parent process, which alone renews and releases it."""
        return self._pid != os.getpid()

    @property
    def is_lost(self) -> bool:
        """Whether the permit no longer counts, so that another caller may begin."""
        return self._lost is not None

    def raise_if_lost(self) -> None:
        """Raises SluicePermitLostError if the permit no longer counts."""
        if self._lost:
            raise self._lost

    def _not_released(self, error: SluiceError) -> None:
        """Tells it once, since a release may also fail after nobody waits for it any more."""
        tell, self._on_release_error = self._on_release_error, None
        if tell is not None:
            tell(error)

    def _lose(self, cause: Exception | None) -> Literal[False]:
        # A renewal may be answered after the release.
        if not self._is_over:
            self._lost = SluicePermitLostError(self.key, self.request_id)
            self._lost.__cause__ = cause
            if self._on_lost is not None:
                self._on_lost()
        return False


class Renewals:
    """When the hold of a permit is renewed, in seconds of the monotonic clock."""

    def __init__(self, hold_seconds: float, asked_at: float) -> None:
        self.hold_seconds = hold_seconds
        self.cause: Exception | None = None
        self._next_at = asked_at + hold_seconds / RENEWALS_PER_HOLD
        # If it has waited, nothing says how long ago its turn came. Then a renewal says whether it is held.
        self._lapses_at = (asked_at if self._next_at > monotonic() else monotonic()) + hold_seconds

    @property
    def pause(self) -> float:
        """Until the next renewal."""
        return max(0.0, self._next_at - monotonic())

    @property
    def has_to_begin(self) -> bool:
        """Whether the approval is so old that it has to be renewed before its block begins."""
        return self._next_at <= monotonic() or self.cause is not None

    @property
    def timeout(self) -> float:
        """The longest time of a renewal now; 0 or less once the hold has lapsed."""
        return min(self.hold_seconds / RENEWALS_PER_HOLD, self._lapses_at - monotonic())

    def succeeded(self, sent_at: float) -> Literal[True]:
        self._lapses_at = sent_at + self.hold_seconds
        self._next_at = sent_at + self.hold_seconds / RENEWALS_PER_HOLD
        self.cause = None
        return True

    def failed(self, cause: Exception) -> Literal[False]:
        self.cause = cause
        self._next_at = min(monotonic() + self.hold_seconds / RETRIES_PER_HOLD, self._lapses_at)
        return False
