"""What the headers of a vendor's answer say about its limits."""

import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import mktime_tz, parsedate_tz
from typing import Literal

from ._structured import structured_items

VendorUnit = Literal["requests", "tokens", "input_tokens", "output_tokens"]


@dataclass(frozen=True, slots=True)
class VendorRemaining:
    """What a vendor says about one of its limits."""

    unit: VendorUnit
    remaining: int
    reset_millis: int | None
    """Until the limit resets: 1 to 86,400,000; None if the vendor does not say when."""


# The headers that say what remains of a limit, and when it resets: of the older drafts of `RateLimit`, of GitHub and
# many others, of OpenAI and Azure, and of Anthropic.
_HEADERS: tuple[tuple[VendorUnit, str, str], ...] = (
    ("requests", "ratelimit-remaining", "ratelimit-reset"),
    ("requests", "x-ratelimit-remaining", "x-ratelimit-reset"),
    ("requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("requests", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("tokens", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("input_tokens", "anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("output_tokens", "anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
)

_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]+)?")
_DURATION = re.compile(r"(?:[0-9]{1,15}(?:\.[0-9]+)?(?:ms|[smhd]))+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhd])")
_UNIT_MILLIS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# RFC 3339.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})")
# More seconds than these are a date: seconds since 1970.
_YEAR_SECONDS = 365 * 86_400
# More than these, which would be in the year 5138, are milliseconds since 1970.
_LARGEST_DATE_SECONDS = 100_000_000_000
# The longest reset and the longest pause that Sluice takes.
_LONGEST_MILLIS = 86_400_000


def remaining_in(headers: Mapping[str, str], now: float | None = None) -> list[VendorRemaining]:
    """Reads what remains of the limits of a vendor, as the headers of its answer say, for `report_remaining`.

    A limit may be there several times. Ignores values that can't be read, and limits that have reset already.
    `now`, in seconds since 1970, is for an answer without its date; by default the time of this machine.
    """
    sent_at = _sent_at(headers, now)
    by_name = {name.lower(): value for name, value in headers.items()}
    stated = _stated_by_draft(by_name)
    stated += [(unit, by_name.get(remaining), by_name.get(reset)) for unit, remaining, reset in _HEADERS]
    found = []
    for unit, remaining, reset in stated:
        resets = _items_of(reset)
        for index, text in enumerate(_items_of(remaining)):
            at = resets[0] if len(resets) == 1 else "".join(resets[index : index + 1])
            left, reset_millis = _number_in(text), _millis_until(at, sent_at)
            if left is not None and (reset_millis is None or reset_millis > 0):
                longest = None if reset_millis is None else min(math.ceil(reset_millis), _LONGEST_MILLIS)
                found.append(VendorRemaining(unit, math.floor(left), longest))
    return found


def retry_millis_in(status: int, headers: Mapping[str, str], now: float | None = None) -> int:
    """For how long an answer asks its caller to wait: 0 to 86,400,000; 0 if it asks for nothing.

    By `Retry-After-Ms` of OpenAI and Azure, or by `Retry-After`, which has seconds or a date (RFC 9110, section 10.2.3).
    `now` as of `remaining_in`.
    """
    if status not in (429, 503):
        return 0
    text = headers.get("retry-after", "")
    millis, seconds = _number_in(headers.get("retry-after-ms", "")), _number_in(text)
    if millis is None and seconds is not None:
        millis = seconds * 1000
    if millis is None and (date := _http_date_in(text)) is not None:
        millis = date - _sent_at(headers, now)
    return max(0, math.ceil(min(millis or 0, _LONGEST_MILLIS)))


def _sent_at(headers: Mapping[str, str], now: float | None) -> float:
    """When an answer was sent, in ms, by the vendor's clock if it says so: its dates are of the same clock."""
    date = next((_http_date_in(value) for name, value in headers.items() if name.lower() == "date"), None)
    return (time.time() if now is None else now) * 1000 if date is None else date


def _http_date_in(text: str) -> float | None:
    with suppress(ValueError, OverflowError):
        date = parsedate_tz(text)
        return None if date is None else mktime_tz(date) * 1000
    return None


def _items_of(text: str | None) -> list[str]:
    """A header about several limits may be a list."""
    return [item.strip() for item in (text or "").split(",")]


def _number_in(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _stated_by_draft(headers: Mapping[str, str]) -> list[tuple[VendorUnit, str | None, str | None]]:
    """What `RateLimit` says.

    That is `"name";r=12;t=60` for each limit, as of draft-ietf-httpapi-ratelimit-headers-08 to -11, or
    `limit=100, remaining=12, reset=60`, as of -07.
    """
    header = headers.get("ratelimit", "")
    policies = dict(structured_items(headers.get("ratelimit-policy", "")))
    remaining, reset = (re.search(rf"(?:^|[ ,]){name}=([0-9.]+)", header) for name in ("remaining", "reset"))
    return [
        ("requests", item.get("r"), item.get("t"))
        for name, item in structured_items(header)
        # Other units are bytes and connections.
        if policies.get(name, {}).get("qu", '"requests"') == '"requests"'
    ] + [("requests", remaining and remaining[1], reset and reset[1])]


def _millis_until(text: str, now_millis: float) -> float | None:
    """Reads when a limit resets.

    That is seconds, a duration such as `6m0s`, or a date, which is seconds or milliseconds since 1970 or RFC 3339.
    """
    seconds = _number_in(text)
    if seconds is not None:
        if seconds > _LARGEST_DATE_SECONDS:
            return seconds - now_millis
        return seconds * 1000 - now_millis if seconds > _YEAR_SECONDS else seconds * 1000
    if _DURATION.fullmatch(text):
        return sum(float(n) * _UNIT_MILLIS[unit] for n, unit in _DURATION_PART.findall(text))
    with suppress(ValueError, OverflowError):
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text).timestamp() * 1000 - now_millis
    return None
