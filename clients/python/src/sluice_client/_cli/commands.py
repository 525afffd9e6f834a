"""The commands. The Node client's command line has the same."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """What a command takes: the `operands` that it needs, one that is `optional`, and with `runs` a CMD after `--`."""

    usage: str
    summary: str
    options: tuple[str, ...] = ()
    operands: tuple[str, ...] = ("KEY",)
    optional: str | None = None
    runs: bool = False


# Of all commands that ask Sluice.
_CONNECTION = ("url", "token-file", "json")
_PLACE = ("hits", "lane", "group")
_ASKING = ("max", "window", "max-queue", *_PLACE, "hold", "max-wait", "holder")

COMMANDS = {
    "run": Command(
        "run KEY [options] -- CMD [ARG...]",
        "runs CMD while it holds an approval",
        (*_ASKING, "no-wait", "grace", "quiet", *_CONNECTION),
        runs=True,
    ),
    "check": Command(
        "check KEY [options]",
        "prints the request id of an approval",
        (*_ASKING, "wait", "quiet", *_CONNECTION),
    ),
    "release": Command(
        "release KEY ID [options]",
        "gives an approval back",
        _CONNECTION,
        operands=("KEY", "ID"),
    ),
    "peek": Command(
        "peek KEY [options]",
        "says what a check would get now; changes nothing",
        (*_PLACE, *_CONNECTION),
    ),
    "pause": Command(
        "pause KEY DURATION|--end [options]",
        "approves no check of KEY for a time",
        ("group", "end", *_CONNECTION),
        optional="DURATION",
    ),
    "top": Command(
        "top [options]",
        "shows keys that are paused, denied or waited for, live",
        ("interval", "once", *_CONNECTION),
        operands=(),
    ),
    "completion": Command(
        "completion bash|zsh|fish",
        "prints a script for the shell",
        operands=("SHELL",),
    ),
}
