"""What a failure is called, and its exit code."""

from collections.abc import Sequence

from .._errors import SluiceDeniedError, SluiceError, SluicePermitLostError, SluiceUnavailableError
from .durations import shown_time
from .errors import CommandStartError, InterruptedBySignal, OutputError
from .exit_codes import Exit, code_of_signal

# What a command reports in a line, and ends with its code. All else is a fault of the program.
Failure = SluiceError | InterruptedBySignal | CommandStartError | OutputError
FAILURES = (SluiceError, InterruptedBySignal, CommandStartError, OutputError)


def exit_code_of(error: Failure) -> int:
    match error:
        case SluiceDeniedError():
            return Exit.DENIED
        case SluicePermitLostError():
            return Exit.LOST
        case SluiceUnavailableError():
            return Exit.UNAVAILABLE
        case SluiceError():
            return Exit.USAGE
        case InterruptedBySignal():
            return code_of_signal(error.signal)
        case CommandStartError():
            return error.exit_code
        case OutputError():
            return Exit.UNWRITABLE


def text_of(error: Failure, urls: Sequence[str]) -> str:
    """What a failure is called in a line. `urls` are the addresses that were asked."""
    match error:
        case SluiceDeniedError():
            by = "" if error.limit is None else f" by the limit {error.limit}"
            return f"denied{by}, try again in {shown_time(error.retry_after * 1000)}"
        case SluicePermitLostError():
            return f"the hold is lost: {error}"
        case SluiceError(status=int()):
            return f"{error} (status {error.status})"
        case SluiceUnavailableError():
            return f"{error} ({', '.join(urls)})"
    return str(error)


def event_of(error: Failure) -> dict[str, object]:
    """A failure as a message in JSON."""
    match error:
        case SluiceDeniedError():
            return {"event": "denied", "retryAfterSeconds": error.retry_after, "limit": error.limit}
        case SluicePermitLostError():
            return {"event": "lost", "error": str(error)}
        case SluiceError():
            return {"event": "error", "error": str(error), "code": error.code, "status": error.status}
    return {"event": "error", "error": str(error)}
