"""Durations of the command line, and times for people."""

import json
import math
import re

from .errors import CommandLineError

MILLIS_OF = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# From here on, a time is shown in the next larger unit.
MOST_OF_UNIT = 120


def parse_duration(name: str, text: str) -> int:
    """Reads a duration such as `30s`, in ms. Raises a CommandLineError that has `name` for any other text."""
    parts = re.fullmatch("([0-9]{1,9})(ms|s|m|h|d)", text)
    if parts:
        return int(parts[1]) * MILLIS_OF[parts[2]]
    shown = json.dumps(text, ensure_ascii=False)
    raise CommandLineError(f"{name} must be a duration such as 30s, 10m or 2h, not {shown}")


def shown_time(millis: float) -> str:
    """A time for people, rounded up: `40 s`, `12 min` or `3 h`."""
    seconds = math.ceil(millis / 1000)
    if seconds < MOST_OF_UNIT:
        return f"{seconds} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < MOST_OF_UNIT else f"{math.ceil(minutes / 60)} h"
