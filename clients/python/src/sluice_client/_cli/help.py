"""What `--help` prints."""

from .commands import COMMANDS
from .options import OPTIONS
from .program import PROGRAM

# The columns of what the text on the right explains.
LEFT_COLUMNS = 24

USES_ENVIRONMENT = (
    "Without --url: SLUICE_URL, with commas between several addresses, else http://localhost:8080.",
    "Without --token-file: the file in SLUICE_TOKEN_FILE, else the token in SLUICE_TOKEN.",
    "Durations are such as 500ms, 30s, 10m, 2h or 1d.",
)
CODES = (
    "Exit codes: 0 approved (of run: as of CMD), 1 no such approval, 64 wrong command line or request,",
    "69 no decision, 70 the hold was lost, 74 no output, 75 denied, 126 and 127 CMD can not be started,",
    "128+n ended by signal n.",
)


def help_text(about: str | None) -> list[str]:
    """The lines of the help about a command, or all."""
    return _of_all() if about is None else _of_command(about)


def _of_all() -> list[str]:
    usages = [line for one in COMMANDS.values() for line in (f"  {PROGRAM} {one.usage}", f"      {one.summary}")]
    return [
        "Usage:",
        *usages,
        f"  {PROGRAM} --help | COMMAND --help | --version",
        "",
        *USES_ENVIRONMENT,
        "",
        *CODES,
    ]


def _of_command(name: str) -> list[str]:
    command = COMMANDS[name]
    summary = command.summary[0].upper() + command.summary[1:]
    lines = [f"Usage: {PROGRAM} {command.usage}", "", f"{summary}."]
    if command.options:
        lines += ["", "Options:", *(_row(option) for option in command.options), "", *USES_ENVIRONMENT]
    return lines


def _row(name: str) -> str:
    option = OPTIONS[name]
    form = f"--{name} {option.takes}" if option.takes_value else f"--{name}"
    return f"  {form:<{LEFT_COLUMNS}}{option.text}"
