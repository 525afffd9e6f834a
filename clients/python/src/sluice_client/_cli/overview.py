"""Which keys may need a person, from the dashboard's data."""

from dataclasses import dataclass

import httpx

from .._answer_part import AnswerPart
from .._errors import SluiceError, SluiceUnavailableError
from .connection import Connection
from .durations import shown_time

# The most rows that the dashboard's data has.
MOST_ROWS = 200
TIMEOUT_SECONDS = 5.0

# The states that need a person, by their names in the data.
STATES = {"paused": "paused", "denied": "denied", "queue_full": "queue full", "waiting": "waiting"}


@dataclass(frozen=True, slots=True)
class BusyKey:
    """A key that may need a person, with the first of its states."""

    key: str
    state: str
    used: float
    most: float
    waiting: float
    denied_per_second: float
    paused_millis: float

    @property
    def shown_state(self) -> str:
        """The state for people, which says how long a pause lasts."""
        return f"paused {shown_time(self.paused_millis)}" if self.state == "paused" else self.state

    @property
    def fields(self) -> dict[str, object]:
        return {
            "key": self.key,
            "state": self.state,
            "used": self.used,
            "max": self.most,
            "waiting": self.waiting,
            "deniedPerSecond": self.denied_per_second,
            "pausedMillis": self.paused_millis,
        }


@dataclass(frozen=True, slots=True)
class Overview:
    """`is_complete` says whether all keys are known. Keys that need a person most come first."""

    replicas: int
    is_complete: bool
    keys: list[BusyKey]

    @property
    def fields(self) -> dict[str, object]:
        keys = [one.fields for one in self.keys]
        return {"replicas": self.replicas, "isComplete": self.is_complete, "keys": keys}


async def read_overview(http: httpx.AsyncClient, connection: Connection) -> Overview:
    """Reads which keys are paused, denied or waited for. Each address is asked until one answers.

    Raises a SluiceError if Sluice rejects it, and a SluiceUnavailableError without an answer.
    """
    for url in connection.urls:
        try:
            return _overview_in(await _read(http, url, connection))
        except SluiceUnavailableError as error:
            failure = error
    raise failure


async def _read(http: httpx.AsyncClient, url: str, connection: Connection) -> AnswerPart:
    token = connection.token() if callable(connection.token) else connection.token
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    address = f"{url.rstrip('/')}/ui/data"
    try:
        answer = await http.get(address, params={"limit": MOST_ROWS}, headers=headers, timeout=TIMEOUT_SECONDS)
    except httpx.RequestError as cause:
        raise SluiceUnavailableError("Sluice is unreachable", False) from cause
    if answer.status_code == 200:
        return AnswerPart.body_of(answer)
    raise _error_of(answer.status_code)


def _error_of(status: int) -> SluiceError:
    if status == 404:
        where = "no dashboard at this address: DEBUG_ENDPOINTS is false, or it is on the port in ADMIN_PORT"
        return SluiceError(where, status)
    if status < 500:
        return SluiceError("the keys may not be read", status)
    return SluiceUnavailableError("the keys can not be read", False, status)


def _overview_in(data: AnswerPart) -> Overview:
    # Those that need a person most come first.
    replicas = len(list(data.field("replicas")))
    is_complete = data.field("isComplete").flag
    keys = [busy for row in data.field("keys") if (busy := _busy_key_in(row)) is not None]
    return Overview(replicas, is_complete, keys)


def _busy_key_in(row: AnswerPart) -> BusyKey | None:
    """None if nobody has to look at the key."""
    # The one for which it needs a person most comes first.
    first = next(iter(row.field("states")), None)
    state = None if first is None else STATES.get(first.text)
    if state is None:
        return None
    # Its own limit comes first.
    own = next(iter(row.field("limits")), None)
    denials = row.field("recentDenials")
    return BusyKey(
        key=row.field("key").text,
        state=state,
        used=0 if own is None else own.field("used").number,
        most=0 if own is None else own.field("maximum").number,
        waiting=row.field("waiting").number,
        denied_per_second=0 if denials.is_missing else denials.field("perSecond").number,
        paused_millis=row.field("pausedMillis").number,
    )
