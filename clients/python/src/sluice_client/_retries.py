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
        if concerns_address(error) and self._failures < self._addresses and left > 0:
            self.next_call = replace(self._call, timeout=None if left == math.inf else left)
            return 0.0
        if self._pauses >= self._retries:
            error.may_have_counted = self._was_lost
            raise error
        pause = pause_seconds(error, self._pauses)
        self._pauses += 1
        self._begin_round(pause)
        return pause


def concerns_address(error: SluiceUnavailableError) -> bool:
    """Whether another address may answer."""
    return is_lost(error) or str(error) == STOPPING


def pause_seconds(error: SluiceUnavailableError, pauses: int, longest: float = math.inf) -> float:
    """How long to wait before a request is sent again, after so many pauses. It is never less than `Retry-After`.

    Without `Retry-After`, each pause is longer than the last, up to `longest`.
    """
    least = error.retry_after or min(FIRST_PAUSE_SECONDS * PAUSE_GROWTH**pauses, longest)
    return least * (1 + JITTER * random.random())
