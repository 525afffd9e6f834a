"""The headers `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from ._structured import structured_items, whole_number


@dataclass(frozen=True, slots=True)
class Quota:
    """What is left of a limit, as of the decision."""

    name: str
    limit: int
    remaining: int
    reset_seconds: int
    window_seconds: int | None


def quota_in(headers: httpx.Headers) -> tuple[Quota, ...]:
    """The quota in the headers of an answer; empty if it has none."""
    left = dict(structured_items(headers.get("ratelimit", "")))
    found = []
    for name, policy in structured_items(headers.get("ratelimit-policy", "")):
        of_limit = left.get(name, {})
        limit, window = whole_number(policy.get("q")), whole_number(policy.get("w"))
        remaining, reset = whole_number(of_limit.get("r")), whole_number(of_limit.get("t"))
        if limit is not None and remaining is not None and reset is not None:
            found.append(Quota(name, limit, remaining, reset, window))
    return tuple(found)


def quota_headers(quota: Sequence[Quota]) -> dict[str, str]:
    """The headers that `quota_in` reads; empty without a quota."""
    if not quota:
        return {}
    policies = [
        f"{_quoted(one.name)};q={one.limit}" + ("" if one.window_seconds is None else f";w={one.window_seconds}")
        for one in quota
    ]
    left = [f"{_quoted(one.name)};r={one.remaining};t={one.reset_seconds}" for one in quota]
    return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(left)}


def _quoted(text: str) -> str:
    return '"' + re.sub(r'["\\]', r"\\\g<0>", text) + '"'
