"""What a command that asks about a key writes on standard error."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence

from .._errors import SluiceDeniedError, SluiceError
from .._protocol import WaitProgress
from .durations import shown_time
from .errors import InterruptedBySignal
from .failures import Failure, event_of, text_of
from .output import json_of, write_error, write_line
from .printable import printable
from .program import PROGRAM
from .terminal import terminal_size

# Moves the cursor to the start of the line, and clears the line.
CLEAR_LINE = "\r\x1b[K"


class Messages(ABC):
    @abstractmethod
    def waits(self, place: WaitProgress) -> None:
        """It waits, at this place."""

    @abstractmethod
    def approved(self, request_id: str) -> None:
        """Its wait is over."""

    @abstractmethod
    def lost(self, error: Exception) -> None:
        """The hold is lost, and CMD is ended."""

    @abstractmethod
    def unreleased(self, error: SluiceError) -> None:
        """The approval could not be released."""

    @abstractmethod
    def unsignalled(self, error: OSError) -> None:
        """CMD can't be sent a signal."""

    @abstractmethod
    def failed(self, error: Failure) -> None:
        """The command has failed, was denied, or was interrupted."""


class TextMessages(Messages):
    """Lines for a log. On a terminal, the place in the queue is one line, which is kept up to date."""

    def __init__(self, key: str, urls: Sequence[str], is_quiet: bool) -> None:
        self._key = key
        self._urls = urls
        self._is_quiet = is_quiet
        self._is_terminal = os.isatty(2)
        self._has_waited = False
        self._is_line_open = False

    def waits(self, place: WaitProgress) -> None:
        if self._is_quiet:
            return
        estimate = f", about {shown_time(place.wait_millis)}" if place.wait_millis > 0 else ""
        shown = f"position {place.position}{estimate}"
        if self._is_terminal:
            # A line that the terminal wraps could not be cleared.
            columns = terminal_size(2).columns
            write_error(CLEAR_LINE + printable(f"{self._key}: {shown}")[: columns - 1])
            self._is_line_open = True
        elif not self._has_waited:
            self._write(f"waits, {shown}")
        self._has_waited = True

    def approved(self, request_id: str) -> None:
        self._clear()

    def lost(self, error: Exception) -> None:
        self._write(f"the hold is lost, CMD is ended: {error}")

    def unreleased(self, error: SluiceError) -> None:
        self._write(f"not released, the approval lapses with its hold: {text_of(error, self._urls)}")

    def unsignalled(self, error: OSError) -> None:
        self._write(f"CMD can't be signalled: {error}")

    def failed(self, error: Failure) -> None:
        is_news = self._is_quiet and isinstance(error, SluiceDeniedError)
        if isinstance(error, InterruptedBySignal) or is_news:
            self._clear()
        else:
            self._write(text_of(error, self._urls))

    def _clear(self) -> None:
        if self._is_line_open:
            write_error(CLEAR_LINE)
        self._is_line_open = False

    def _write(self, text: str) -> None:
        self._clear()
        write_line(f"{PROGRAM}: {self._key}: {text}")


class JsonMessages(Messages):
    """Objects in JSON, each on a line of its own."""

    def __init__(self, key: str, is_quiet: bool) -> None:
        self._key = key
        self._is_quiet = is_quiet

    def waits(self, place: WaitProgress) -> None:
        if not self._is_quiet:
            self._write({"event": "waiting", "position": place.position, "waitMillis": place.wait_millis})

    def approved(self, request_id: str) -> None:
        if not self._is_quiet:
            self._write({"event": "approved", "requestId": request_id})

    def lost(self, error: Exception) -> None:
        self._write({"event": "lost", "error": str(error)})

    def unreleased(self, error: SluiceError) -> None:
        self._write({"event": "unreleased", "error": str(error)})

    def unsignalled(self, error: OSError) -> None:
        self._write({"event": "unsignalled", "error": str(error)})

    def failed(self, error: Failure) -> None:
        is_news = self._is_quiet and isinstance(error, SluiceDeniedError)
        if not (isinstance(error, InterruptedBySignal) or is_news):
            self._write(event_of(error))

    def _write(self, message: dict[str, object]) -> None:
        write_line(json_of({"event": message["event"], "key": self._key, **message}))
