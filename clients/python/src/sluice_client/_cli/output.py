"""Writes results on standard output, and all else on standard error."""

import json
import os
import sys
from typing import TextIO


def print_result(text: str) -> None:
    write(sys.stdout, f"{text}\n")


def print_json(result: dict[str, object]) -> None:
    """Writes a result for other programs. A field that is None is left out."""
    print_result(json_of(result))


def write_line(line: str) -> None:
    """Writes a line on standard error."""
    write(sys.stderr, f"{line}\n")


def json_of(fields: dict[str, object]) -> str:
    given = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"))


def write(stream: TextIO, text: str) -> None:
    # Python has no stream for a descriptor that is closed.
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # Nobody reads it any more. What goes on is not ended for that: CMD keeps its approval.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
