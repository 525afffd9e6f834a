"""The whole terminal, for a picture that is drawn again and again."""

import asyncio
import os
import termios
import tty
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from .output import write_screen
from .printable import printable
from .terminal import terminal_size

ENTER = "\x1b[?1049h\x1b[?25l"
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H"
CLEAR_TO_LINE_END = "\x1b[K"
CLEAR_BELOW = "\x1b[J"


class Screen:
    """`on_end` is called when a person types q. Ctrl-C stays a signal."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._reads = os.isatty(0)

    def __enter__(self) -> Self:
        write_screen(ENTER)
        if self._reads:
            self._before = termios.tcgetattr(0)
            tty.setcbreak(0)
            asyncio.get_running_loop().add_reader(0, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Shows again what was there before."""
        write_screen(LEAVE)
        if self._reads:
            asyncio.get_running_loop().remove_reader(0)
            termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    @property
    def rows(self) -> int:
        return terminal_size(1).lines

    def draw(self, lines: Sequence[str]) -> None:
        """Replaces what is shown. Each line is cut at the right edge."""
        columns, rows = terminal_size(1)
        shown = [printable(line)[:columns] + CLEAR_TO_LINE_END for line in lines[:rows]]
        write_screen(HOME + "\n".join(shown) + CLEAR_BELOW)

    def _read(self) -> None:
        typed = os.read(0, 1024)
        if not typed:
            # The terminal is gone.
            asyncio.get_running_loop().remove_reader(0)
        if b"q" in typed.lower():
            self._on_end()
