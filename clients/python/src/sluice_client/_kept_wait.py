"""A wait whose place in the queue outlives its connections: a chain of short requests with one id."""

import math
import re
from dataclasses import dataclass
from time import monotonic
from uuid import uuid4

import httpx

from ._errors import SluiceError, SluiceTimeoutError, SluiceUnavailableError
from ._kept_retries import KeptRetries
from ._protocol import Call, Decision, WaitOptions, decision_in, error_in, progress_in

# Between the beginnings of two requests at least, if the first has ended before it was due.
INTERVAL_SECONDS = 1.0

# The messages of the 409s after which a wait goes on.
TAKEN_OVER = "a later check with this requestId has taken over"
USED = "the approval with this requestId was released, or has lapsed"

# The messages of a service of before, and of one that keeps places for less time.
UNKNOWN = re.compile("unknown parameter (keepMillis|requestId);")
TOO_LONG = re.compile(r"keepMillis must be at most (\d+)")


@dataclass(frozen=True, slots=True)
class Chain:
    """What all waits of a client have in common."""

    long_poll_seconds: int
    """The longest request."""
    late_seconds: float
    """How much later than it is due an answer may come."""
    retries: int
    addresses: int


class KeptWait:
    """The requests of one wait, each of which goes on where the one before has ended, whichever replica gets it."""

    def __init__(
        self, key: str, options: WaitOptions, holder: str | None, keep_millis: int, chain: Chain
    ) -> None:
        self.key = key
        self.request_id = str(uuid4())
        self.may_have_place = False
        """Whether Sluice may know the id, so that a caller who leaves has to say so."""
        self._options = options.copy()
        self._on_progress = self._options.pop("on_progress", None)
        self._timeout = self._options.pop("timeout", None)
        self._max_wait_millis = self._options.pop("max_wait_millis", None)
        self._holder = holder
        self._keep_millis = keep_millis
        self._late_seconds = chain.late_seconds
        self._retries = KeptRetries(keep_millis / 1000, chain.retries, chain.addresses)
        self._begun_at = self._asked_at = self._next_at = monotonic()
        self._ends_at = math.inf if self._timeout is None else self._begun_at + self._timeout
        self._longest_seconds = chain.long_poll_seconds
        self._was_cut = False
        # A caller that wants to know its place is told at once.
        self._asks_for_place = self._on_progress is not None
        self._had_place = False

    @property
    def options_left(self) -> WaitOptions:
        """The options of a wait that goes on in another way, with what is left of their times."""
        timeout = None if self._timeout is None else max(self._ends_at - monotonic(), 0.001)
        options: WaitOptions = {**self._options, "max_wait_millis": self._millis_left, "timeout": timeout}
        return {**options, "on_progress": self._on_progress}

    @property
    def pause(self) -> float:
        """Until the next request, in seconds."""
        return max(min(self._next_at, self._ends_at) - monotonic(), 0.0)

    def next_call(self) -> Call:
        """The request to send now. Raises SluiceTimeoutError if the caller's time is over."""
        self._asked_at = monotonic()
        time_left = self._ends_at - self._asked_at
        if time_left <= 0:
            raise SluiceTimeoutError("no answer in time", self.may_have_place)
        wait = 0 if self._asks_for_place else self._longest_seconds
        max_wait_millis, millis_left = self._max_wait_millis, self._millis_left
        if millis_left is not None:
            wait = min(wait, millis_left // 1000 + 1)
            # Sluice measures the wait by the place, which began later if the first one was lost.
            max_wait_millis = max_wait_millis if millis_left > 0 else millis_left
        parameters = {
            **self._options,
            "can_wait": "true",
            "max_wait_millis": max_wait_millis,
            "request_id": self.request_id,
            "keep_millis": self._keep_millis,
            "holder": self._holder,
        }
        call = Call("POST", (self.key,), parameters, min(wait + self._late_seconds, time_left), prefer_wait=wait)
        self._had_place, self.may_have_place = self.may_have_place, True
        return call

    def decision_in(self, response: httpx.Response) -> Decision | None:
        """Returns None if the wait goes on. Raises a SluiceError if Sluice rejects it."""
        if response.status_code in (200, 429):
            return decision_in(response)
        if response.status_code == 202:
            progress = progress_in(response)
            self._goes_on(0.0 if self._asks_for_place else INTERVAL_SECONDS)
            self._asks_for_place = False
            if self._on_progress is not None:
                self._on_progress(progress)
            return None
        error = error_in(response)
        if str(error) == TAKEN_OVER:
            # By an earlier request of this wait, which has arrived late.
            self._goes_on(INTERVAL_SECONDS)
            return None
        if str(error) == USED and self._had_place:
            # Its turn has come, and its hold has lapsed before an answer got through. It begins again.
            self.request_id = str(uuid4())
            self._goes_on(INTERVAL_SECONDS)
            return None
        self.may_have_place = self._had_place
        raise error

    def failed(self, error: SluiceUnavailableError) -> None:
        """Prepares the next request. Raises the error if there must not be one."""
        self.may_have_place = error.may_have_counted = self._had_place or error.may_have_counted
        self._shorten(error)
        self._next_at = monotonic() + self._retries.pause_after(error)
        if self._next_at >= self._ends_at:
            raise error

    def _goes_on(self, interval: float) -> None:
        self._retries.placed()
        self._was_cut = False
        self._next_at = self._asked_at + interval

    def _shorten(self, error: SluiceUnavailableError) -> None:
        """Asks for shorter requests if something on the way, such as a proxy, has ended two in a row."""
        seconds = monotonic() - self._asked_at
        was_cut = error.status != 503 and seconds > INTERVAL_SECONDS
        if was_cut and self._was_cut:
            self._longest_seconds = max(int(min(self._longest_seconds, seconds) / 2), 1)
        self._was_cut = was_cut

    @property
    def _millis_left(self) -> int | None:
        """What is left of the longest wait."""
        millis = self._max_wait_millis
        return None if millis is None else max(millis - int((monotonic() - self._begun_at) * 1000), min(millis, 0))


def longest_kept(error: SluiceError) -> int | None:
    """For how many milliseconds the service keeps places at most, if it has rejected a wait for that."""
    if UNKNOWN.match(str(error)):
        return 0
    longest = TOO_LONG.match(str(error))
    return None if longest is None else int(longest[1])
