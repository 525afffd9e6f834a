"""Requests to Sluice and their answers, without the sending, which differs between the two clients."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict
from urllib.parse import quote, urlencode

import httpx

from ._answer_part import AnswerPart
from ._errors import SluiceError, SluiceTimeoutError, SluiceUnavailableError
from ._holder import Name
from ._quota import Quota, quota_in
from ._structured import whole_number
from ._texts import demand_short

CONNECT_SECONDS = 2.0
# Waits take a connection each. With a bound, a release could not be sent that a wait needs. The clients make a transport
# of them, since httpx.Client itself would send through the proxies of the environment, also to localhost.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)

# The errors of a request that had no connection to be sent on.
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

# The answer of a replica that stops. Another may go on.
STOPPING = "shutting down"

# The codes of the 503s that are certain to have counted nothing.
COUNTED_NOTHING = (
    "STORE_FULL",
    "KEY_FULL",
    "SHUTTING_DOWN",
    "TOO_MANY_WAITERS",
    "TOO_MANY_WAITERS_OF_CALLER",
)

Token = str | Callable[[], str] | None


class ClientOptions(TypedDict, total=False):
    """How to ask: the token, the time limit in seconds, how often to try again if that is safe, and how to wait.

    A wait keeps its place in the queue for `keep_millis` after its connection has ended; with 0, the place ends with the
    connection. A request of a wait lasts `long_poll_millis`, in whole seconds, rounded up.

    `holder` is who holds the approvals that are held, shown with their key: host and process by default. With False
    nobody is named.
    """

    token: Token
    timeout: float
    retries: int
    holder: Name
    keep_millis: int
    long_poll_millis: int


class CheckOptions(TypedDict, total=False):
    """How to ask for permission.

    `lane` is the lane of the check, if its key has lanes; by default the last one. `group` is its group, such as a tenant,
    if its key has fair groups: 1 to 64 bytes; by default the group of all checks that name none.
    """

    lane: str | None
    group: str | None
    hits: int
    hold_millis: int
    max_requests: int
    max_requests_in_queue: int
    window_millis: int


@dataclass(frozen=True, slots=True)
class WaitProgress:
    """The place of a wait in the queue of its key."""

    position: int
    """1 is next. Exact while at most 1,000 waiters are before it."""
    wait_millis: int
    """The least time until its turn if nothing is released before."""


class WaitOptions(CheckOptions, total=False):
    """How to ask for permission, and to wait for it: `max_wait_millis` denies; `timeout`, in seconds, raises.

    `on_progress` is called with the place in the queue once the check waits, and then after each `long_poll_millis`. An
    error that it raises ends the wait.
    """

    max_wait_millis: int | None
    timeout: float | None
    on_progress: Callable[[WaitProgress], None] | None


class AskingOptions(WaitOptions, total=False):
    """How to ask for permission, and whether to wait if the limit is reached. `wait` is True by default."""

    wait: bool


class PermitOptions(AskingOptions, total=False):
    """How to get a permit: also whether to hold it. `hold` is True by default.

    `on_release_error` is called if the release at the end fails. The permit then ends with its hold, or its window.
    """

    hold: bool
    on_release_error: Callable[[SluiceError], None] | None


@dataclass(frozen=True, slots=True)
class Approval:
    """Sluice approves the check."""

    request_id: str
    uncounted: bool
    """Whether nothing counts the approval: a shadow rule let it pass, or the outage policy `allow`."""
    quota: tuple[Quota, ...]
    approved: Literal[True] = True


@dataclass(frozen=True, slots=True)
class Denial:
    """Sluice denies the check."""

    retry_after: int
    limit: str | None
    quota: tuple[Quota, ...]
    approved: Literal[False] = False


Decision = Approval | Denial


@dataclass(frozen=True, slots=True)
class Peek:
    """What a check would get now."""

    allowed: bool
    wait_millis: int
    """The least time until the turn of a check that joined the queue now; 0 if a check would be approved."""
    limit: str | None
    quota: tuple[Quota, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The request waits."""

    position: int
    """In the queue: 1 is the head. Exact while at most 1,000 are before it, with those withdrawn lately."""
    wait_millis: int
    """The least time until its turn."""
    status: Literal["waiting"] = "waiting"


@dataclass(frozen=True, slots=True)
class Approved:
    """The request is approved."""

    hold_millis: int | None
    """Until its hold lapses; None if it is not held."""
    status: Literal["approved"] = "approved"


RequestStatus = Waiting | Approved


@dataclass(frozen=True, slots=True)
class Call:
    """A request, and the longest time for its answer in seconds. None is for ever."""

    method: str
    names: tuple[str, ...]
    parameters: Mapping[str, object]
    timeout: float | None
    prefer_wait: int | None = None
    """After how many seconds a wait that keeps its place is answered if it is not decided."""

    def __post_init__(self) -> None:
        """Raises a ValueError for a group that is empty or too long."""
        group = self.parameters.get("group")
        if isinstance(group, str):
            demand_short("group", group)

    @property
    def is_check(self) -> bool:
        """Whether the answer may be an approval."""
        return self.method == "POST"

    @property
    def only_answer_has_id(self) -> bool:
        """Whether only the answer has the id of an approval."""
        return self.is_check and "request_id" not in self.parameters

    @property
    def waits(self) -> bool:
        return self.parameters.get("can_wait") is not None

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again although the first may have taken effect.

        If a held wait whose answer was lost is approved, nobody renews its hold, so that the approval ends with it.
        """
        return not self.is_check or (self.waits and self.parameters.get("hold_millis") is not None)

    @property
    def path(self) -> str:
        # A name of dots would be part of the path.
        names = (_quoted(name).replace(".", "%2E") for name in self.names)
        given = {_camel(name): value for name, value in self.parameters.items() if value is not None}
        return "/".join(["/rate", *names]) + (f"?{urlencode(given)}" if given else "")

    @property
    def timeouts(self) -> httpx.Timeout:
        return httpx.Timeout(self.timeout, connect=min(CONNECT_SECONDS, self.timeout or CONNECT_SECONDS))


def decision_in(response: httpx.Response) -> Decision:
    if response.status_code == 200:
        policy = response.headers.get("x-sluice-outage-policy")
        uncounted = "x-sluice-shadow" in response.headers or policy == "allow"
        request_id = AnswerPart.body_of(response).field("request_id").text
        return Approval(request_id, uncounted, quota_in(response.headers))
    if response.status_code == 429:
        return Denial(_retry_after(response) or 1, _limit_in(response), quota_in(response.headers))
    raise error_in(response)


def progress_in(response: httpx.Response) -> WaitProgress:
    return WaitProgress(*_place_in(AnswerPart.body_of(response)))


def peek_in(response: httpx.Response) -> Peek:
    if response.status_code not in (200, 429):
        raise error_in(response)
    wait_millis = int(AnswerPart.body_of(response).field("waitMillis").number)
    return Peek(response.status_code == 200, wait_millis, _limit_in(response), quota_in(response.headers))


def is_found(response: httpx.Response) -> bool:
    """Whether there is the approval that the request is about."""
    if response.status_code == 200:
        return True
    if response.status_code == 404 and _body(response).get("error") == "request not found":
        return False
    raise error_in(response)


def status_in(response: httpx.Response) -> RequestStatus | None:
    """What a request is now; None if there is no such request."""
    if not is_found(response):
        return None
    body = AnswerPart.body_of(response)
    if body.field("status").text == "waiting":
        return Waiting(*_place_in(body))
    hold_millis = body.field("holdMillis")
    return Approved(None if hold_millis.is_missing else int(hold_millis.number))


def _place_in(body: AnswerPart) -> tuple[int, int]:
    return int(body.field("position").number), int(body.field("waitMillis").number)


def _limit_in(response: httpx.Response) -> str | None:
    """The limit that a denial names, if it names one."""
    return _text(_body(response).get("limit"))


def unanswered(error: httpx.TransportError) -> SluiceUnavailableError:
    """The error of a request without an answer."""
    never_sent = isinstance(error, NEVER_SENT)
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return SluiceTimeoutError("no answer in time", not never_sent)
    message = "Sluice is unreachable" if never_sent else "the answer from Sluice was lost"
    return SluiceUnavailableError(message, not never_sent)


def is_lost(error: SluiceUnavailableError) -> bool:
    """Whether there was no connection, or it broke before the answer: another address may answer."""
    return error.status is None and not isinstance(error, SluiceTimeoutError)


def _quoted(name: str) -> str:
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"{name!a} is not valid Unicode: it has half of a surrogate pair") from None


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def error_in(response: httpx.Response) -> SluiceError:
    status = response.status_code
    body = _body(response)
    said = _text(body.get("error")) or f"status {status}"
    message = "not an answer from Sluice" if status < 400 else said
    code = _text(body.get("code"))
    if 400 <= status < 500:
        return SluiceError(message, status, code)
    may_have_counted = status != 503 or code not in COUNTED_NOTHING
    retry_after = _retry_after(response)
    return SluiceUnavailableError(message, may_have_counted, status, retry_after, code)


def _retry_after(response: httpx.Response) -> int | None:
    return whole_number(response.headers.get("retry-after"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _body(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}
