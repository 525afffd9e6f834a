"""The scripts with which shells complete the command line."""

import json

from .commands import COMMANDS
from .errors import CommandLineError
from .options import OPTIONS
from .program import PROGRAM

SHELLS = ("bash", "zsh", "fish")


def completion(shell: str) -> str:
    """The script for a shell. Raises a CommandLineError for a shell without one."""
    match shell:
        case "bash":
            return _bash_script()
        case "zsh":
            return _zsh_script()
        case "fish":
            return _fish_script()
    known = f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]}"
    raise CommandLineError(f"completion takes {known}, not {json.dumps(shell, ensure_ascii=False)}")


_BASH = r"""# Completion of @PROGRAM@ for bash: source <(@PROGRAM@ completion bash)
_sluice_client() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command='' word words i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- && $command == run ]]; then
      COMPREPLY=($(compgen -c -- "$current"))
      return
    fi
    if [[ -z $command && $word != -* ]]; then command=$word; fi
  done
  case $previous in
    --token-file)
      COMPREPLY=($(compgen -f -- "$current"))
      return
      ;;
    @WITH_VALUE@)
      return
      ;;
  esac
  case $command in
    '') words='@WORDS@' ;;
@CASES@
    *) return ;;
  esac
  if [[ $current == -* || -z $command || $command == completion ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}
complete -F _sluice_client @PROGRAM@"""


def _bash_script() -> str:
    with_value = [f"--{name}" for name, option in OPTIONS.items() if option.takes_value and name != "token-file"]
    cases = []
    for name, command in COMMANDS.items():
        words = SHELLS if name == "completion" else [f"--{option}" for option in command.options]
        cases.append(f"    {name}) words='{' '.join([*words, '--help'])}' ;;")
    return _filled(
        _BASH,
        WITH_VALUE=" | ".join(with_value),
        WORDS=" ".join([*COMMANDS, "--help", "--version"]),
        CASES="\n".join(cases),
    )


_ZSH = r"""# Completion of @PROGRAM@ for zsh: source <(@PROGRAM@ completion zsh)
_sluice_client() {
  local -a commands
  commands=(
@COMMANDS@
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
@CASES@
  esac
}
compdef _sluice_client @PROGRAM@"""


def _zsh_script() -> str:
    cases = []
    for name, command in COMMANDS.items():
        operands = command.operands if command.optional is None else (*command.operands, command.optional)
        specs = [
            *map(_zsh_option, command.options),
            "'--help[print help]'",
            *(
                f"'{place}:SHELL:({' '.join(SHELLS)})'" if operand == "SHELL" else f"'{place}:{operand}:'"
                for place, operand in enumerate(operands, 1)
            ),
            *(["'*::CMD:_normal'"] if command.runs else []),
        ]
        cases.append(f"    {name}) _arguments -S {' '.join(specs)} ;;")
    commands = [f"    '{name}:{command.summary}'" for name, command in COMMANDS.items()]
    return _filled(_ZSH, COMMANDS="\n".join(commands), CASES="\n".join(cases))


def _zsh_option(name: str) -> str:
    option = OPTIONS[name]
    repeated = "*" if option.kind == "texts" else ""
    if not option.takes_value:
        return f"'{repeated}--{name}[{option.text}]'"
    files = "_files" if name == "token-file" else ""
    return f"'{repeated}--{name}=[{option.text}]:{option.takes}:{files}'"


# In fish: whether `--` is before the cursor.
_IN_COMMAND_LINE = "'contains -- -- (commandline -opc)'"


def _fish_script() -> str:
    lines = []
    for name, command in COMMANDS.items():
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        lines.append(f"-n __fish_use_subcommand -a {name} -d '{command.summary}'")
        for option in command.options:
            files = " -r -F" if option == "token-file" else " -x"
            value = files if OPTIONS[option].takes_value else ""
            lines.append(f"{seen} -l {option}{value} -d '{OPTIONS[option].text}'")
        if name == "completion":
            lines.append(f"{seen} -a '{' '.join(SHELLS)}'")
        if command.runs:
            lines.append(f"-n {_IN_COMMAND_LINE} -F -a '(__fish_complete_command)'")
    return "\n".join(
        [
            f"# Completion of {PROGRAM} for fish: {PROGRAM} completion fish | source",
            f"complete -c {PROGRAM} -f",
            *(f"complete -c {PROGRAM} {line}" for line in lines),
        ]
    )


def _filled(script: str, **parts: str) -> str:
    """Replaces each `@NAME@`."""
    for name, part in {**parts, "PROGRAM": PROGRAM}.items():
        script = script.replace(f"@{name}@", part)
    return script
