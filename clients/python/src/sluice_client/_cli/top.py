import asyncio
import os
import signal
import time

import httpx

from .._errors import SluiceError
from .arguments import Invocation
from .connection import Connection, connection_of
from .errors import CommandLineError, InterruptedBySignal
from .exit_codes import Exit
from .failures import FAILURES, exit_code_of, text_of
from .output import print_json, print_result, write_line
from .overview import Overview, read_overview
from .program import PROGRAM
from .screen import Screen
from .signals import Signals
from .top_table import table_of

DEFAULT_INTERVAL_MILLIS = 2000
# Of the screen: the two lines above the table, its head, and two lines that may follow it.
OTHER_LINES = 5


async def top(invocation: Invocation) -> int:
    """`top`: shows the keys that are paused, denied or waited for; on a terminal until a person ends it.

    Returns the exit code. Raises a CommandLineError if the options are wrong.
    """
    values = invocation.values
    interval = values.number("interval")
    if interval == 0:
        raise CommandLineError("--interval must be above 0")
    connection = connection_of(values)
    is_live = os.isatty(1) and not values.has("once")
    signals = Signals()
    live = Live(connection, (interval or DEFAULT_INTERVAL_MILLIS) / 1000, values.has("json"), signals)
    try:
        await signals.run(live.show() if is_live else live.print_once())
    except InterruptedBySignal as error:
        # A person ends it so.
        return Exit.OK if is_live and error.signal == signal.SIGINT else exit_code_of(error)
    except FAILURES as error:
        write_line(f"{PROGRAM}: {text_of(error, connection.urls)}")
        return exit_code_of(error)
    return Exit.OK


class Live:
    """Reads and shows the keys."""

    def __init__(self, connection: Connection, interval: float, is_json: bool, signals: Signals) -> None:
        self._connection = connection
        self._interval = interval
        self._is_json = is_json
        self._signals = signals

    async def print_once(self) -> None:
        async with _http() as http:
            overview = await read_overview(http, self._connection)
        if self._is_json:
            print_json(overview.fields)
        else:
            print_result(*table_of(overview))

    async def show(self) -> None:
        """Shows the keys again and again. Raises a SluiceError only if nothing was read yet."""
        async with _http() as http:
            overview = await read_overview(http, self._connection)
            if self._is_json:
                await self._show_again(http, overview, None)
            else:
                with Screen(lambda: self._signals.interrupt(signal.SIGINT)) as screen:
                    await self._show_again(http, overview, screen)

    async def _show_again(self, http: httpx.AsyncClient, overview: Overview, screen: Screen | None) -> None:
        failure = ""
        while True:
            if screen is not None:
                screen.draw(_lines_of(overview, failure, screen.rows))
            elif failure == "":
                print_json(overview.fields)
            await asyncio.sleep(self._interval)
            try:
                overview, failure = await read_overview(http, self._connection), ""
            except SluiceError as error:
                failure = text_of(error, self._connection.urls)


def _http() -> httpx.AsyncClient:
    """Without the proxies of the environment, as the client."""
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport())


def _lines_of(overview: Overview, failure: str, rows: int) -> list[str]:
    count = overview.replicas
    state = f"{time.strftime('%H:%M:%S')}  {count} {'replica' if count == 1 else 'replicas'}  q ends this"
    return [failure or state, "", *table_of(overview, max(1, rows - OTHER_LINES))]
