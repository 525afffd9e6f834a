"""Writes results on standard output, and all else on standard error."""

import json
import os
import sys

from .errors import OutputError
from .printable import printable


def print_result(*lines: str) -> None:
    """Writes the lines of a result on standard output. Raises an OutputError if they can't be written."""
    try:
        _write_output("".join(f"{printable(line)}\n" for line in lines))
    except OSError as error:
        raise OutputError(error) from error


def print_json(result: dict[str, object]) -> None:
    """Writes a result for other programs. A field that is None is left out."""
    print_result(json_of(result))


def write_line(line: str) -> None:
    """Writes a line on standard error."""
    write_error(f"{printable(line)}\n")


def json_of(fields: dict[str, object]) -> str:
    given = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"))


def write_error(text: str) -> None:
    """Writes on standard error, as it is. A log that can't be written stops nothing: CMD keeps its approval."""
    # Python has no stream for a descriptor that is closed.
    if sys.stderr is None:
        return
    try:
        # Without the stream, which would keep what can't be written, and fail with it once more at the end.
        os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding, "backslashreplace"))
    except OSError:
        # There is nowhere to say so.
        pass


def write_screen(text: str) -> None:
    """Writes on the terminal of standard output, if it is still there."""
    try:
        _write_output(text)
    except OSError:
        # There is nowhere to say so.
        pass


def _write_output(text: str) -> None:
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        # At its end, Python would fail once more, with what the stream still has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
