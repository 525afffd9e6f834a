"""Reads a command line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from .commands import COMMANDS
from .errors import CommandLineError
from .options import OPTIONS, Values


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command as it was asked for. `command_line` is what follows `--` for `run`."""

    command: str
    operands: tuple[str, ...]
    values: Values
    command_line: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.operands[0]


@dataclass(frozen=True, slots=True)
class Help:
    """Asks for the help, about a command or all."""

    about: str | None


class Version:
    """Asks for the version."""


# An option as it is written, and its value if one is given.
GivenOption = tuple[str, str | None]


def parse_command_line(args: Sequence[str]) -> Invocation | Help | Version:
    """Raises a CommandLineError for anything that no command takes."""
    end = args.index("--") if "--" in args else len(args)
    words, given = _split(args[:end])
    rest = args[end + 1 :]
    command = _command_of(words[0]) if words else None
    names = {name for name, _ in given}
    if names & {"--help", "-h"}:
        return Help(command)
    if "--version" in names:
        return Version()
    values = _values_of(command, given)
    if command is None:
        raise CommandLineError("a command is missing")
    runs = COMMANDS[command].runs
    operands = _demand_operands(command, words[1:] if runs else [*words[1:], *rest])
    if runs and not rest:
        raise CommandLineError(f"{command} needs CMD after --")
    return Invocation(command, operands, values, tuple(rest) if runs else ())


def _split(args: Sequence[str]) -> tuple[list[str], list[GivenOption]]:
    """Tells the options, with their values, from the other words."""
    words: list[str] = []
    given: list[GivenOption] = []
    left = list(args)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            words.append(_demand_unicode(word))
            continue
        name, equals, value = word.partition("=")
        option = OPTIONS.get(name.removeprefix("--"))
        if equals:
            given.append((name, _demand_unicode(value)))
        elif option is not None and option.takes_value and left and not left[0].startswith("-"):
            given.append((name, _demand_unicode(left.pop(0))))
        else:
            given.append((name, None))
    return words, given


def _demand_unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CommandLineError(f"{text!a} is not valid UTF-8") from None
    return text


def _command_of(name: str) -> str:
    if name not in COMMANDS:
        raise CommandLineError(f"unknown command {name}")
    return name


def _values_of(command: str | None, given: Sequence[GivenOption]) -> Values:
    values = Values()
    for written, value in given:
        name = written.removeprefix("--")
        if not written.startswith("--") or name not in OPTIONS:
            raise CommandLineError(f"unknown option {written}")
        if command is not None and name not in COMMANDS[command].options:
            raise CommandLineError(f"{command} takes no option {written}")
        takes_value = OPTIONS[name].takes_value
        if takes_value and value is None:
            raise CommandLineError(f"{written} needs a value")
        if not takes_value and value is not None:
            raise CommandLineError(f"{written} takes no value")
        values.add(name, value or "")
    return values


def _demand_operands(command: str, given: Sequence[str]) -> tuple[str, ...]:
    form = COMMANDS[command]
    for index, name in enumerate(form.operands):
        if index >= len(given) or given[index] == "":
            raise CommandLineError(f"{command} needs {name}")
    most = len(form.operands) + (form.optional is not None)
    if len(given) > most:
        raise CommandLineError(f"unexpected argument {json.dumps(given[most], ensure_ascii=False)}")
    return tuple(given)
