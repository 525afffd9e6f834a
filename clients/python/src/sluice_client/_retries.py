"""When a request is sent again."""

import math
import random
from dataclasses import replace
from time import monotonic

from ._errors import SluiceUnavailableError
from ._protocol import STOPPING, Call, is_lost

FIRST_PAUSE_SECONDS = 0.1
PAUSE_GROWTH = 3.0
JITTER = 0.2


class Retries:
    """Whether and when one request is sent again: at once while another address may answer, else after a pause.

    It is sent again only if that can't take two approvals, of which one is never given back.
    """

    def __init__(self, call: Call, retries: int, addresses: int) -> None:
        self._call = call
        self._retries = retries
        self._addresses = addresses
        self._pauses = 0
        # Whether an answer was lost before the request was sent again.
        self._was_lost = False
        self._begin_round(0.0)

    def _begin_round(self, pause: float) -> None:
        """All addresses are asked within the request's time, so that a renewal ends before its hold lapses."""
        self._failures = 0
        self._ends_at = math.inf if self._call.timeout is None else monotonic() + pause + self._call.timeout
        self.next_call = self._call
        """The request, with the time that is left for it."""

    def pause_after(self, error: SluiceUnavailableError) -> float:
        """How many seconds later the request is sent again. Raises the error if it must not be."""
        self._was_lost = self._was_lost or error.may_have_counted
        if error.may_have_counted and not (is_lost(error) and self._call.is_repeatable):
            raise error
        self._failures += 1
        left = self._ends_at - monotonic()
        is_of_address = is_lost(error) or str(error) == STOPPING
        if is_of_address and self._failures < self._addresses and left > 0:
            self.next_call = replace(self._call, timeout=None if left == math.inf else left)
            return 0.0
        if self._pauses >= self._retries:
            error.may_have_counted = self._was_lost
            raise error
        pause = error.retry_after or FIRST_PAUSE_SECONDS * PAUSE_GROWTH**self._pauses
        pause *= 1 + JITTER * random.random()
        self._pauses += 1
        self._begin_round(pause)
        return pause
