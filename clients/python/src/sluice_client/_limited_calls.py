"""Calls that wait for permission, without the sending, which differs between the two transports."""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Generic, Literal, Protocol, TypeVar

from ._core import Core
from ._errors import SluiceError
from ._protocol import AskingOptions
from ._remaining_reports import OWN_LIMIT, RemainingReports, ReportedLimits
from ._vendor_headers import retry_millis_in


class Answer(Protocol):
    """What is read of a response, of httpx or httpx2."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


Request = TypeVar("Request")
Response = TypeVar("Response", bound=Answer)

Key = str | Callable[[Request], str | None]


class LimitedOptions(AskingOptions, total=False):
    """How a limited transport asks, and what it tells Sluice about the answers, which is nothing by default.

    `pauses_key`: whether an answer of 429 or 503 with `retry-after-ms` or `Retry-After` pauses the key for that time, for
    all callers. With "group", only the group of the call is paused, or the key if the call names none. A pause that fails is
    ignored: the next such answer asks for it again.

    `reports_remaining`: whether an answer whose headers say that less remains than Sluice believes is reported to
    Sluice, at most once a second for each key and limit: the first number, then the least of the second at its end, and 0
    at once. With True, the requests that remain are reported to the key's
    own limit. ReportedLimits has the names of the limits that requests and tokens are reported to. For a limit that is
    not a fixed window, the key is paused if nothing remains, or with `per_group` the group. A report that fails is ignored.
    """

    pauses_key: bool | Literal["group"]
    reports_remaining: bool | ReportedLimits


class LimitedCalls(Generic[Request, Response]):
    """Waits for permission before each call, and tells Sluice what the answer says.

    `never_sent` are the errors of a call that had no connection to be sent on.
    """

    def __init__(
        self, core: Core, key: Key[Request], options: LimitedOptions, never_sent: tuple[type[Exception], ...]
    ) -> None:
        if not isinstance(key, str) and not callable(key):
            raise TypeError(f"key must be a str or a function of the request, not {key!r}")
        _demand_known("option", options, LimitedOptions.__optional_keys__)
        self._core = core
        self._key = key
        self._never_sent = never_sent
        self._pauses_key = options.pop("pauses_key", False)
        # Any other value would pause the whole key.
        if self._pauses_key not in (True, False, "group"):
            raise ValueError(f"pauses_key must be True, False or 'group', not {self._pauses_key!r}")
        group = options.get("group")
        self._paused_group = group if self._pauses_key == "group" else None
        self._reports = _reports_to(core, options.pop("reports_remaining", False), group)
        self._asking: AskingOptions = options

    async def call(
        self,
        request: Request,
        send: Callable[[Request], Awaitable[Response]],
        close: Callable[[Response], Awaitable[None]],
    ) -> Response:
        """Sends a request once it is approved. Suspends only if the core, `send` or `close` does."""
        key = self._key if isinstance(self._key, str) else self._key(request)
        if key is None:
            return await send(request)
        approval = await self._core._approval(key, self._asking)
        try:
            response = await send(request)
        except self._never_sent:
            # Nothing used the approval. After any other failure, the request may have reached its target.
            await self._core._release_unnoticed(key, approval.request_id)
            raise
        try:
            # Both before the answer is returned, so that the caller's next request finds the report and the pause.
            millis = retry_millis_in(response.status_code, response.headers) if self._pauses_key else 0
            pauses = {self._paused_group: millis}
            if self._reports is not None:
                group = self._reports.group
                pauses[group] = max(pauses.get(group, 0), await self._reports.report(key, response.headers, approval.quota))
            for group, millis in pauses.items():
                if millis > 0:
                    with suppress(SluiceError):
                        # Another answer may have asked for longer.
                        await self._core.pause(key, millis, can_shorten=False, group=group)
        except BaseException:
            await close(response)
            raise
        return response


def _reports_to(core: Core, limits: bool | ReportedLimits, group: str | None) -> RemainingReports | None:
    if not limits:
        return None
    if limits is True:
        return RemainingReports(core, {"requests": OWN_LIMIT})
    _demand_known("unit", limits, ReportedLimits.__optional_keys__)
    return RemainingReports(core, limits, group)


def _demand_known(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises a TypeError for a name that does not exist. A misspelt limit must not be ignored."""
    names = sorted(known)
    for name in given:
        if name not in names:
            [nearest] = difflib.get_close_matches(name, names, n=1, cutoff=0)
            raise TypeError(f"unknown {what} {name}; did you mean {nearest}?")
