"""Calls that wait for permission, without the sending, which differs between the two transports."""

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from time import monotonic
from typing import Generic, Literal, Protocol, TypeVar

from ._answer_usage import ENCODINGS, HitsOf, UsageReader, tokens_in
from ._at_work import AtWork
from ._core import Core
from ._errors import SluiceError
from ._permit import Permit
from ._protocol import Approval, AskingOptions
from ._remaining_reports import OWN_LIMIT, RemainingReports, ReportedLimits
from ._vendor_headers import retry_millis_in


# The waits after a 429 that says no time: each is twice as long as the last one.
FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 8.0


class Sent(Protocol):
    """What is read of a request, of httpx or httpx2."""

    @property
    def stream(self) -> object: ...

    @property
    def headers(self) -> MutableMapping[str, str]: ...


class Answer(Protocol):
    """What is read of a response, of httpx or httpx2."""

    is_closed: bool

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def content(self) -> bytes: ...


Request = TypeVar("Request", bound=Sent)
Response = TypeVar("Response", bound=Answer)

Key = str | Callable[[Request], str | None]


class LimitedOptions(AskingOptions, total=False):
    """How a limited transport asks, and what it tells Sluice about the answers, which is nothing by default.

    `hold_millis`: holds the approval of a request until its response is closed, and renews the hold meanwhile. So a limit
    caps how many requests are at work at a time. A hold ends if nobody reads the body for so long. By default nothing is
    held.

    `retries`: how often a request is sent again whose answer is 429, or 503 with `retry-after-ms` or `Retry-After`. It
    waits for that time, or for 0.5 s, 1 s, 2 s and so on up to 8 s, but never longer than `max_wait_millis`, and asks for
    permission again. A request whose body is no bytes, text, form or JSON is sent once. 0 by default.

    `corrects_hits`: whether the hits of an approval are corrected to the tokens that the answer says were used, as OpenAI
    and Anthropic say it, once its response is closed. A function returns the hits of an answer, or None if the answer does
    not say. Bodies in JSON of up to 4 MiB are read, and streams of events. A correction that fails is ignored.

    `pauses_key`: whether an answer of 429 or 503 with `retry-after-ms` or `Retry-After` pauses the key for that time, for
    all callers. With "group", only the group of the call is paused, or the key if the call names none. A pause that fails is
    ignored: the next such answer asks for it again.

    `reports_remaining`: whether an answer whose headers say that less remains than Sluice believes is reported to
    Sluice, at most once a second for each key and limit: the first number, then the least of the second at its end, and 0
    at once. With True, the requests that remain are reported to the key's
    own limit. ReportedLimits has the names of the limits that requests and tokens are reported to. For a limit that is
    not a fixed window, the key is paused if nothing remains, or with `per_group` the group. A report that fails is ignored.
    """

    retries: int
    corrects_hits: bool | HitsOf
    pauses_key: bool | Literal["group"]
    reports_remaining: bool | ReportedLimits


class LimitedCalls(Generic[Request, Response]):
    """Waits for permission before each call, and tells Sluice what the answer says.

    `never_sent` are the errors of a call that had no connection to be sent on, and `bytes_stream` the kind of body that can
    be sent again.
    """

    def __init__(
        self,
        core: Core,
        key: Key[Request],
        options: LimitedOptions,
        never_sent: tuple[type[Exception], ...],
        bytes_stream: type[object],
    ) -> None:
        if not isinstance(key, str) and not callable(key):
            raise TypeError(f"key must be a str or a function of the request, not {key!r}")
        _demand_known("option", options, LimitedOptions.__optional_keys__)
        self._core = core
        self._key = key
        self._never_sent = never_sent
        self._bytes_stream = bytes_stream
        self._retries = options.pop("retries", 0)
        if not self._retries >= 0:
            raise ValueError(f"retries must be at least 0, not {self._retries!r}")
        corrects = options.pop("corrects_hits", False)
        if not isinstance(corrects, bool) and not callable(corrects):
            raise TypeError(f"corrects_hits must be True, False or a function, not {corrects!r}")
        self._hits_of = (tokens_in if corrects else None) if isinstance(corrects, bool) else corrects
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
        watch: Callable[[Response, AtWork], None],
    ) -> Response:
        """Sends a request once it is approved, and again if it is refused. `watch` has the work end with the response.

        Suspends only if the core, `send` or `close` does.
        """
        key = self._key if isinstance(self._key, str) else self._key(request)
        if key is None:
            return await send(request)
        if self._hits_of is not None:
            _accept_readable(request.headers)
        retries = self._retries if isinstance(request.stream, self._bytes_stream) else 0
        longest = self._asking.get("max_wait_millis")
        retry = 0
        while True:
            response = await self._call_once(key, request, send, close, watch)
            pause = _retry_pause(response, retry) if retry < retries else None
            if pause is None or (longest is not None and pause * 1000 > longest):
                return response
            await close(response)
            await self._core._sleep(pause)
            retry += 1

    async def _call_once(
        self,
        key: str,
        request: Request,
        send: Callable[[Request], Awaitable[Response]],
        close: Callable[[Response], Awaitable[None]],
        watch: Callable[[Response, AtWork], None],
    ) -> Response:
        asked_at = monotonic()
        approval = await self._core._approval(key, self._asking)
        permit = Permit(key, approval.request_id)
        hold_millis = None if approval.uncounted else self._asking.get("hold_millis")
        renewals = None if hold_millis is None else await self._core._held(permit, hold_millis, asked_at)
        work = AtWork(self._core, permit, renewals)
        try:
            response = await work.step(lambda: send(request))
        except BaseException as error:
            # Nothing used the approval. After any other failure, the request may have reached its target.
            if isinstance(error, self._never_sent) and renewals is None:
                await self._core._release_unnoticed(key, approval.request_id)
            await work.end()
            raise
        try:
            # Before the answer is returned, so that the caller's next request finds the report and the pause.
            await self._tell(key, response, approval)
        except BaseException:
            await close(response)
            await work.end()
            raise
        if self._hits_of is not None and not approval.uncounted:
            work.usage = UsageReader(response.headers, self._hits_of, response.is_closed)
        if response.is_closed:
            await work.read_all(response.content)
        elif renewals is not None or work.usage is not None:
            watch(response, work)
        return response

    async def _tell(self, key: str, response: Response, approval: Approval) -> None:
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


def _accept_readable(headers: MutableMapping[str, str]) -> None:
    """Asks for no encoding that can't be read here."""
    accepted = [one.strip() for one in headers.get("accept-encoding", "identity").split(",")]
    readable = [one for one in accepted if one.split(";")[0].strip() in ("identity", *ENCODINGS)]
    headers["accept-encoding"] = ", ".join(readable) or "identity"


def _retry_pause(response: Answer, retry: int) -> float | None:
    """After how many seconds a request is sent again; None if its answer is final."""
    millis = retry_millis_in(response.status_code, response.headers)
    if millis > 0:
        return millis / 1000
    return min(FIRST_RETRY_SECONDS * 2**retry, LONGEST_RETRY_SECONDS) if response.status_code == 429 else None


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
