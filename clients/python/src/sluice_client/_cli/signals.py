"""The signals that this process gets."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import TypeVar

from .errors import InterruptedBySignal

T = TypeVar("T")

CAUGHT = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Signals:
    """They go to `receiver` if there is one. Without one, the first interrupts, and the next ends the process.

    A signal that is ignored stays ignored, as nohup asks for.
    """

    def __init__(self) -> None:
        self.receiver: Callable[[signal.Signals], None] | None = None
        """Gets the signals from now on."""
        self._caught = [number for number in CAUGHT if signal.getsignal(number) is not signal.SIG_IGN]
        self._work: asyncio.Task[object] | None = None
        self._ended_by: signal.Signals | None = None

    async def run(self, work: Coroutine[object, None, T]) -> T:
        """Returns the result of `work`. Cancels it, and raises InterruptedBySignal, if a signal interrupts."""
        loop = asyncio.get_running_loop()
        task = self._work = asyncio.create_task(work)
        for number in self._caught:
            loop.add_signal_handler(number, self._receive, number)
        try:
            return await task
        except asyncio.CancelledError:
            if self._ended_by is None:
                raise
            raise InterruptedBySignal(self._ended_by) from None
        finally:
            self._release()

    def interrupt(self, number: signal.Signals) -> None:
        """Interrupts, as a signal does that nobody receives."""
        self._release()
        self._ended_by = number
        if self._work is not None:
            self._work.cancel()

    def _receive(self, number: signal.Signals) -> None:
        if self.receiver is None:
            self.interrupt(number)
        else:
            self.receiver(number)

    def _release(self) -> None:
        """From now on each signal has its default effect."""
        loop = asyncio.get_running_loop()
        for number in self._caught:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
