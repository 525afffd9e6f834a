"""What the commands that ask about a key have in common."""

import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from .._aio import AsyncSluiceClient
from .._protocol import CheckOptions, ClientOptions
from .arguments import Invocation
from .connection import connection_of
from .failures import FAILURES, exit_code_of
from .messages import JsonMessages, Messages, TextMessages
from .options import Values
from .signals import Signals

# On a terminal somebody looks at the place in the queue: Sluice is asked for it so often.
SEEN_POLL_MILLIS = 2000


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command works with."""

    sluice: AsyncSluiceClient
    key: str
    values: Values
    messages: Messages
    signals: Signals


async def ask(invocation: Invocation, work: Callable[[Asked], Coroutine[object, None, int]]) -> int:
    """Asks Sluice about the key of a command. Returns the exit code, of a failure as well.

    Raises a CommandLineError if the options are wrong.
    """
    key, values = invocation.key, invocation.values
    connection = connection_of(values)
    is_quiet = values.has("quiet")
    messages = JsonMessages(key, is_quiet) if values.has("json") else TextMessages(key, connection.urls, is_quiet)
    options: ClientOptions = {"token": connection.token, "holder": values.text("holder")}
    if os.isatty(2):
        options["long_poll_millis"] = SEEN_POLL_MILLIS
    sluice = AsyncSluiceClient(connection.urls, **options)
    # Its end waits until places and approvals that are being given back are given back.
    async with sluice:
        signals = Signals()
        asked = Asked(sluice, key, values, messages, signals)
        try:
            return await signals.run(work(asked))
        except FAILURES as error:
            messages.failed(error)
            return exit_code_of(error)


def asking_of(values: Values) -> CheckOptions:
    """What a check asks for."""
    options: CheckOptions = {"lane": values.text("lane"), "group": values.text("group")}
    if (hits := values.number("hits")) is not None:
        options["hits"] = hits
    if (most := values.number("max")) is not None:
        options["max_requests"] = most
    if (places := values.number("max-queue")) is not None:
        options["max_requests_in_queue"] = places
    if (window := values.number("window")) is not None:
        options["window_millis"] = window
    if (hold := values.number("hold")) is not None:
        options["hold_millis"] = hold
    return options
