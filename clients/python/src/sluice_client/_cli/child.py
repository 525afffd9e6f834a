"""CMD, which uses the standard streams of this process."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from .errors import CommandStartError
from .exit_codes import code_of_signal

# A terminal sends these to its whole foreground group, of which CMD is one.
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
# Nothing tells when the last process of a group has ended.
LOOK_SECONDS = 0.05


class Child:
    """CMD.

    Without a terminal it has a process group of its own, and signals go to the whole group. With a terminal it stays in
    the foreground group, so that it can read from the terminal.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, has_own_group: bool, on_signal_error: Callable[[OSError], None]
    ) -> None:
        self._process = process
        self._has_own_group = has_own_group
        self._on_signal_error = on_signal_error

    @classmethod
    async def start(
        cls,
        command_line: Sequence[str],
        environment: Mapping[str, str],
        on_signal_error: Callable[[OSError], None],
    ) -> "Child":
        """Starts CMD. `environment` is added to the one of this process.

        `on_signal_error` gets the error of each signal that can't be sent, as to a process of another user. Raises a
        CommandStartError if CMD can't be executed.
        """
        has_own_group = not any(os.isatty(descriptor) for descriptor in (0, 1, 2))
        try:
            process = await asyncio.create_subprocess_exec(
                *command_line, env={**os.environ, **environment}, start_new_session=has_own_group
            )
        except OSError as error:
            raise CommandStartError(command_line[0], error) from error
        return cls(process, has_own_group, on_signal_error)

    async def ended(self) -> int:
        """Returns the exit code, or 128 and the number of the signal that has ended it."""
        code = await self._process.wait()
        return code if code >= 0 else code_of_signal(signal.Signals(-code))

    def pass_on(self, number: signal.Signals) -> None:
        """Passes on a signal that this process got."""
        if self._has_own_group or number not in FROM_TERMINAL:
            self._send(number)

    async def stop(self, grace_seconds: float) -> None:
        """Ends it by SIGTERM. Whatever of it still goes on after the grace is ended by SIGKILL."""
        kills_at = monotonic() + grace_seconds
        self._send(signal.SIGTERM)
        while self._is_alive():
            if monotonic() >= kills_at:
                self._send(signal.SIGKILL)
                return
            await asyncio.sleep(LOOK_SECONDS)

    def _is_alive(self) -> bool:
        if not self._has_own_group:
            return self._process.returncode is None
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True

    def _send(self, number: signal.Signals) -> None:
        try:
            if self._has_own_group:
                os.killpg(self._process.pid, number)
            else:
                self._process.send_signal(number)
        except ProcessLookupError:
            # It has ended.
            pass
        except OSError as error:
            self._on_signal_error(error)
