"""The command line `sluice-client`."""

import asyncio
import sys
from collections.abc import Callable, Coroutine

from .arguments import Help, Invocation, Version, parse_command_line
from .check import check
from .completion import completion
from .errors import CommandLineError, OutputError
from .exit_codes import Exit
from .help import help_text
from .output import print_result, write_line
from .pause import pause
from .peek import peek
from .program import PROGRAM, program_version
from .release import release
from .run import run
from .top import top

ASKING: dict[str, Callable[[Invocation], Coroutine[object, None, int]]] = {
    "run": run,
    "check": check,
    "release": release,
    "peek": peek,
    "pause": pause,
    "top": top,
}


def main() -> int:
    """Carries out the command line of this process. Returns the exit code."""
    try:
        return _carry_out(parse_command_line(sys.argv[1:]))
    except OutputError as error:
        write_line(f"{PROGRAM}: {error}")
        return Exit.UNWRITABLE
    except CommandLineError as error:
        write_line(f"{PROGRAM}: {error}; see {PROGRAM} --help")
        return Exit.USAGE


def _carry_out(asked: Invocation | Help | Version) -> int:
    match asked:
        case Help(about):
            print_result(*help_text(about))
        case Version():
            print_result(program_version())
        case Invocation(command="completion", operands=(shell,)):
            print_result(*completion(shell).split("\n"))
        case Invocation(command=command):
            return asyncio.run(ASKING[command](asked))
    return Exit.OK
