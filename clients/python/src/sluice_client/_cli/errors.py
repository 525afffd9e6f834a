"""Why a command ends, other than by an answer of Sluice."""

import errno
import signal

from .exit_codes import Exit


class CommandLineError(Exception):
    """The command line is wrong. The message is one line."""


class InterruptedBySignal(Exception):
    """A signal has ended a wait, or a command that does not run CMD."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(f"ended by {number.name}")
        self.signal = number


class OutputError(Exception):
    """A result could not be written."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"the result can't be written: {cause}")


class CommandStartError(Exception):
    """CMD could not be started."""

    def __init__(self, command: str, cause: OSError) -> None:
        is_missing = isinstance(cause, FileNotFoundError)
        name = errno.errorcode.get(cause.errno or 0, str(cause))
        super().__init__(f"{command}: not found" if is_missing else f"{command}: can't be executed: {name}")
        self.exit_code = Exit.NO_SUCH_COMMAND if is_missing else Exit.NOT_EXECUTABLE
