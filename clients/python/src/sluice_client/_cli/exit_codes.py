"""The exit codes of the commands, beside CMD's own code."""

import signal
from enum import IntEnum

# Of a process that a signal has ended, from 129 on.
SIGNAL_BASE = 128


class Exit(IntEnum):
    """The exit codes, by their names in sysexits.h where one fits."""

    OK = 0
    NOT_FOUND = 1
    USAGE = 64
    UNAVAILABLE = 69
    LOST = 70
    UNWRITABLE = 74
    DENIED = 75
    NOT_EXECUTABLE = 126
    NO_SUCH_COMMAND = 127


def code_of_signal(number: signal.Signals) -> int:
    """The exit code of a process that a signal has ended, as of a shell."""
    return SIGNAL_BASE + number
