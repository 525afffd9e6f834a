"""What the headers of a vendor's answer say about its limits."""

import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ._structured import structured_items, whole_number

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

_SECONDS = re.compile(r"[0-9]{1,15}(?:\.[0-9]+)?")
_DURATION = re.compile(r"(?:[0-9]{1,15}(?:\.[0-9]+)?(?:ms|[smhd]))+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhd])")
_UNIT_MILLIS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# RFC 3339.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})")
# More seconds than these are a date: seconds since 1970.
_YEAR_SECONDS = 365 * 86_400
# More than these, which would be in the year 5138, are milliseconds since 1970.
_LARGEST_DATE_SECONDS = 100_000_000_000
# The longest reset that Sluice takes.
_LONGEST_RESET_MILLIS = 86_400_000


def remaining_in(headers: Mapping[str, str], now: float | None = None) -> list[VendorRemaining]:
    """Reads what remains of the limits of a vendor, as the headers of its answer say, for `report_remaining`.

    A limit may be there several times. Ignores values that can't be read, and limits that have reset already.
    `now` is in seconds since 1970, and the time of this machine by default.
    """
    now_millis = (time.time() if now is None else now) * 1000
    by_name = {name.lower(): value for name, value in headers.items()}
    stated = _stated_by_draft(by_name)
    stated += [(unit, by_name.get(remaining), by_name.get(reset)) for unit, remaining, reset in _HEADERS]
    found = []
    for unit, remaining, reset in stated:
        left, reset_millis = whole_number(remaining), _millis_until(reset or "", now_millis)
        if left is not None and (reset_millis is None or reset_millis > 0):
            longest = None if reset_millis is None else min(math.ceil(reset_millis), _LONGEST_RESET_MILLIS)
            found.append(VendorRemaining(unit, left, longest))
    return found


def _stated_by_draft(headers: Mapping[str, str]) -> list[tuple[VendorUnit, str | None, str | None]]:
    """What `RateLimit` says.

    That is `"name";r=12;t=60` for each limit, as of draft-ietf-httpapi-ratelimit-headers-08 to -11, or
    `limit=100, remaining=12, reset=60`, as of -07.
    """
    header = headers.get("ratelimit", "")
    policies = dict(structured_items(headers.get("ratelimit-policy", "")))
    remaining, reset = (re.search(rf"(?:^|[ ,]){name}=([0-9]+)", header) for name in ("remaining", "reset"))
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
    if _SECONDS.fullmatch(text):
        seconds = float(text)
        if seconds > _LARGEST_DATE_SECONDS:
            return seconds - now_millis
        return seconds * 1000 - now_millis if seconds > _YEAR_SECONDS else seconds * 1000
    if _DURATION.fullmatch(text):
        return sum(float(n) * _UNIT_MILLIS[unit] for n, unit in _DURATION_PART.findall(text))
    with suppress(ValueError, OverflowError):
        if _DATE.fullmatch(text):
            return datetime.fromisoformat(text).timestamp() * 1000 - now_millis
    return None
