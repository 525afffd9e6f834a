"""What an answer of a vendor says it has cost."""

import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

# Returns the hits that an answer has cost; None if the answer does not say. It gets the fields of the answer in JSON, or of
# all events of a stream: the last value of each that is not null.
HitsOf = Callable[[dict[str, Any]], float | None]

# A larger JSON body, or event of a stream, is not read.
MOST_BYTES = 4_194_304
# The encodings that can be read here.
ENCODINGS = ("gzip", "deflate")

_EVENT_END = re.compile(rb"\r?\n\r?\n")
# How many bytes of it may have come before the last one.
_LONGEST_END = 3
_READ = re.compile(r"\s*(?:(text/event-stream)|application/(?:[\w.-]+\+)?json)\b", re.IGNORECASE)


def tokens_in(answer: dict[str, Any]) -> int | None:
    """The tokens that an answer of OpenAI's or Anthropic's form says were used.

    The first event of Anthropic's streams has the tokens of the input in `message`, and the last ones have those of the
    output. The Responses API has all in `response`.
    """
    usage = _part(answer, "usage") or _part(_part(answer, "response"), "usage")
    total = usage.get("total_tokens")
    if isinstance(total, int):
        return total
    given = usage.get("input_tokens", _part(_part(answer, "message"), "usage").get("input_tokens"))
    made = usage.get("output_tokens")
    return given + made if isinstance(given, int) and isinstance(made, int) else None


def _part(answer: dict[str, Any], name: str) -> dict[str, Any]:
    part = answer.get(name)
    return part if isinstance(part, dict) else {}


class UsageReader:
    """Reads what the body of an answer says was used, while the body goes to its caller. Its memory is bounded."""

    def __init__(self, headers: Mapping[str, str], hits_of: HitsOf, is_decoded: bool = False) -> None:
        self._hits_of = hits_of
        read = _READ.match(headers.get("content-type", ""))
        encoding = "identity" if is_decoded else headers.get("content-encoding", "identity").strip().lower()
        self._is_stream = read is not None and read[1] is not None
        self._is_read = read is not None and encoding in ("identity", *ENCODINGS)
        # With 32, zlib finds out whether it is gzip.
        self._inflate = None if encoding == "identity" else zlib.decompressobj(zlib.MAX_WBITS | 32)
        # The body, or the event of a stream that has not ended.
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""
        self._fields: dict[str, Any] = {}

    def add(self, chunk: bytes) -> None:
        if not self._is_read:
            return
        try:
            self._add(chunk)
        except zlib.error:
            self._give_up()

    def _add(self, chunk: bytes) -> None:
        if self._inflate is not None:
            chunk = self._inflate.decompress(chunk, MOST_BYTES)
            if self._inflate.unconsumed_tail:
                return self._give_up()
        end = self._tail + chunk
        self._tail = end[-_LONGEST_END:]
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._is_stream and _EVENT_END.search(end):
            *events, rest = _EVENT_END.split(b"".join(self._parts))
            for event in events:
                self._take_event(event)
            self._parts, self._size = [rest], len(rest)
        if self._size > MOST_BYTES:
            self._give_up()

    def _give_up(self) -> None:
        self._is_read = False
        self._parts = []

    def hits(self) -> int | None:
        """Returns a whole number from 0; None if the answer does not say what it has cost."""
        if not self._is_read:
            return None
        rest = b"".join(self._parts)
        if self._is_stream:
            self._take_event(rest)
        else:
            self._take(rest)
        try:
            hits = self._hits_of(self._fields)
            return None if hits is None or hits < 0 else math.ceil(hits)
        except Exception:
            return None

    def _take_event(self, event: bytes) -> None:
        data = (line.removeprefix(b"data:") for line in event.splitlines() if line.startswith(b"data:"))
        self._take(b"\n".join(data))

    def _take(self, text: bytes) -> None:
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            # Such as `[DONE]`, with which streams of OpenAI end, or a body that was cut.
            return
        if isinstance(fields, dict):
            self._fields.update((name, value) for name, value in fields.items() if value is not None)
