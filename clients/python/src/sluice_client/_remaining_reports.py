"""Reports to Sluice of what a vendor says remains of its limits."""

import math
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol, TypedDict

from ._errors import SluiceError, SluiceUnavailableError
from ._quota import Quota
from ._vendor_headers import VendorRemaining, remaining_in

# The name of a key's own limit. No further limit has it.
OWN_LIMIT = "default"
# How often what remains of a limit is reported at most, but for 0. The reports of an answer also take no longer.
INTERVAL_SECONDS = 1.0
# How long a limit is not asked again that has rejected a report. Its rule or the version of Sluice may change.
REJECTED_SECONDS = 60.0


class ReportedLimits(TypedDict, total=False):
    """The limit of a key that each number of a vendor is reported to.

    That is the name of a further limit, or `default` for the key's own limit. Numbers without a limit are not reported.
    `per_group`: whether each group has these limits to itself, so that the reports are about the group of the call.
    """

    requests: str
    tokens: str
    input_tokens: str
    output_tokens: str
    per_group: bool


class Reporter(Protocol):
    """What sends a report; `timeout` is in seconds."""

    def _later(self, seconds: float, work: Callable[[], Coroutine[object, None, None]]) -> None:
        """Does some work after this time, unless the client is closed or the process ends before."""

    async def _send_report(
        self,
        key: str,
        remaining: int,
        reset_millis: int | None,
        limit: str | None,
        group: str | None,
        timeout: float,
        retries: int | None = None,
    ) -> None: ...


@dataclass(slots=True)
class Sent:
    """The last report of a limit, and when Sluice last rejected one, in seconds of the monotonic clock."""

    at: float
    remaining: int
    rejected_at: float
    least: VendorRemaining | None = None
    """The least that was said since, with its reset as of the end of the second."""


class RemainingReports:
    """Reports what a vendor says remains to Sluice. Threads may share it."""

    def __init__(
        self,
        reporter: Reporter,
        limits: ReportedLimits,
        group: str | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reporter = reporter
        self._limits = limits
        # The group that the reports are about; None for limits that all groups share.
        self.group = group if limits.get("per_group") else None
        self._now = now
        # The last report of each key and limit, the oldest first.
        self._sent: dict[tuple[str, str], Sent] = {}
        self._lock = Lock()

    async def report(self, key: str, headers: Mapping[str, str], quota: Iterable[Quota]) -> int:
        """Reports what an answer says, if that is less than Sluice believes. A report that fails is ignored.

        `quota` is what Sluice believes: of the approval with which the vendor was called. Returns for how many
        milliseconds the key, or the group, has to be paused, since nothing remains of a limit that takes no reports; 0 for no
        pause.
        """
        believed, least = _remaining_by_limit(quota), self._least_by_limit(headers)
        pauses = [
            await self._report_one(key, limit, stated, INTERVAL_SECONDS / len(least))
            for limit, stated in least.items()
            if stated.remaining < believed.get(limit, math.inf)
        ]
        return max(pauses, default=0)

    def _least_by_limit(self, headers: Mapping[str, str]) -> dict[str, VendorRemaining]:
        """The least that remains for each limit. Of two, the one that resets later."""
        least: dict[str, VendorRemaining] = {}
        for stated in remaining_in(headers):
            limit = self._limits.get(stated.unit)
            if limit is not None and (limit not in least or _binding(stated) < _binding(least[limit])):
                least[limit] = stated
        return least

    async def _report_one(self, key: str, limit: str, stated: VendorRemaining, timeout: float) -> int:
        """Reports at once, or at the end of the second if the last report was sent in it. 0 does not wait for that."""
        pause_millis = stated.reset_millis or 0 if stated.remaining == 0 else 0
        with self._lock:
            now = self._now()
            last = self._sent.get((key, limit))
            is_rejected = last is not None and now - last.rejected_at < REJECTED_SECONDS
            is_news = stated.remaining == 0 and (last is None or last.remaining != 0)
            if last is not None and not is_news and now - last.at < INTERVAL_SECONDS:
                if not is_rejected:
                    self._keep(last, stated, last.at + INTERVAL_SECONDS - now, key, limit)
                return 0
            if is_rejected and pause_millis == 0:
                return 0
            sent = Sent(now, stated.remaining, -math.inf if last is None else last.rejected_at)
            if last is not None:
                last.least = None
            self._sent.pop((key, limit), None)
            self._forget_before(now - REJECTED_SECONDS)
            self._sent[key, limit] = sent
        if is_rejected:
            return pause_millis
        further = None if limit == OWN_LIMIT else limit
        try:
            await self._reporter._send_report(
                key, stated.remaining, stated.reset_millis, further, self.group, timeout, retries=0
            )
        except SluiceUnavailableError:
            return 0
        except SluiceError:
            sent.rejected_at = now
            return pause_millis
        return 0

    def _keep(self, last: Sent, stated: VendorRemaining, seconds: float, key: str, limit: str) -> None:
        """Keeps the least of what is said in a second, to report it at the end of the second."""
        millis = math.ceil(seconds * 1000)
        # By then the limit has reset.
        if stated.reset_millis is not None and stated.reset_millis <= millis:
            return
        reset_millis = None if stated.reset_millis is None else stated.reset_millis - millis
        kept, is_first = replace(stated, reset_millis=reset_millis), last.least is None
        if last.least is None or _binding(kept) < _binding(last.least):
            last.least = kept

        async def send() -> None:
            with self._lock:
                least, last.least = last.least, None
            # Nobody is there to be told of a failure, such as that of a token's function.
            with suppress(Exception):
                if least is not None:
                    await self._report_one(key, limit, least, INTERVAL_SECONDS)

        if is_first:
            self._reporter._later(seconds, send)

    def _forget_before(self, earliest: float) -> None:
        while self._sent:
            oldest = next(iter(self._sent))
            if self._sent[oldest].at > earliest:
                return
            del self._sent[oldest]


def _binding(stated: VendorRemaining) -> tuple[int, int]:
    """Less if a limit binds more."""
    return stated.remaining, -(stated.reset_millis or 0)


def _remaining_by_limit(quota: Iterable[Quota]) -> dict[str, int]:
    """What Sluice believes remains of each limit, if the approval says so.

    The own limit is the first one. Its name may be that of a rule, which a further limit may have as well.
    """
    return {one.name if index > 0 else OWN_LIMIT: one.remaining for index, one in enumerate(quota)}
