"""The options of all commands. The Node client's command line has the same."""

import json
import re
from dataclasses import dataclass
from typing import Literal

from .._texts import demand_short
from .durations import parse_duration
from .errors import CommandLineError

Kind = Literal["flag", "text", "name", "texts", "number", "duration"]


@dataclass(frozen=True, slots=True)
class Option:
    """`takes` names its value, if it has one; `text` is what the help says."""

    kind: Kind
    takes: str
    text: str

    @property
    def takes_value(self) -> bool:
        return self.kind != "flag"


OPTIONS = {
    "max": Option("number", "N", "the most approvals in a window (maxRequests)"),
    "window": Option("duration", "DURATION", "the length of a window (windowMillis)"),
    "max-queue": Option("number", "N", "the places in the queue (maxRequestsInQueue)"),
    "hits": Option("number", "N", "how much of the maximum it takes; 1 by default"),
    "lane": Option("text", "NAME", "the lane of the key; its last one by default"),
    "group": Option("name", "NAME", "the fair group of the key, such as a tenant"),
    "hold": Option("duration", "DURATION", "how long it is held (run: 30s, and renewed; check: not held)"),
    "wait": Option("flag", "", "wait for a turn"),
    "no-wait": Option("flag", "", "be denied at once instead of waiting"),
    "max-wait": Option("duration", "DURATION", "the longest wait; no limit by default"),
    "holder": Option("name", "TEXT", "who holds it; host and process by default"),
    "grace": Option("duration", "DURATION", "between SIGTERM and SIGKILL when the hold is lost; 10s by default"),
    "quiet": Option("flag", "", "write errors only"),
    "end": Option("flag", "", "end the pause"),
    "interval": Option("duration", "DURATION", "between two draws; 2s by default"),
    "once": Option("flag", "", "print once, also on a terminal"),
    "url": Option("texts", "URL", "an address of Sluice; repeat it for several addresses"),
    "token-file": Option("text", "FILE", "the file with the bearer token"),
    "json": Option("flag", "", "write JSON"),
}


class Values:
    """The options that were given. Durations are in milliseconds."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._numbers: dict[str, int] = {}

    def add(self, name: str, text: str) -> None:
        """Notes an option; a flag has no text. Raises a CommandLineError for a value that the option does not take."""
        option, shown = OPTIONS[name], f"--{name}"
        match option.kind:
            case "number":
                if not re.fullmatch("[0-9]{1,15}", text):
                    given = json.dumps(text, ensure_ascii=False)
                    raise CommandLineError(f"{shown} must be a whole number, not {given}")
                self._numbers[name] = int(text)
            case "duration":
                self._numbers[name] = parse_duration(shown, text)
            case "name":
                try:
                    demand_short(shown, text)
                except ValueError as error:
                    raise CommandLineError(str(error)) from None
                self._texts[name] = [text]
            case "texts":
                self._texts.setdefault(name, []).append(_demand_some(shown, text))
            case "text":
                self._texts[name] = [_demand_some(shown, text)]
            case "flag":
                self._texts[name] = []

    def has(self, name: str) -> bool:
        return name in self._texts or name in self._numbers

    def number(self, name: str) -> int | None:
        return self._numbers.get(name)

    def text(self, name: str) -> str | None:
        return self._texts[name][0] if name in self._texts else None

    def texts(self, name: str) -> list[str]:
        """All values of an option that may be repeated."""
        return self._texts.get(name, [])


def _demand_some(shown: str, text: str) -> str:
    if text == "":
        raise CommandLineError(f"{shown} needs a value")
    return text
