import { COMMAND_NAMES, COMMANDS, type Invocation } from './arguments.js';
import { CommandLineError, EXIT, PROGRAM } from './errors.js';
import { print } from './messages.js';
import { OPTIONS, type OptionName, takesValue } from './options.js';

const SCRIPTS: Readonly<Record<string, () => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};
const SHELLS = Object.keys(SCRIPTS);

export async function completion({ operands: [shell = ''] }: Invocation): Promise<number> {
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
  if (!script) {
    const known = `${SHELLS.slice(0, -1).join(', ')} or ${SHELLS.at(-1) ?? ''}`;
    throw new CommandLineError(`completion takes ${known}, not ${JSON.stringify(shell)}`);
  }
  await print(...script().split('\n'));
  return EXIT.OK;
}

function bashScript(): string {
  const withValue = (Object.keys(OPTIONS) as OptionName[]).filter(takesValue);
  const cases = COMMAND_NAMES.map((name) => {
    const words =
      name === 'completion' ? SHELLS : COMMANDS[name].options.map((option) => `--${option}`);
    return `    ${name}) words='${[...words, '--help'].join(' ')}' ;;`;
  });
  return `# Completion of ${PROGRAM} for bash: source <(${PROGRAM} completion bash)
_sluice_client() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local command='' word words i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
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
    ${withValue
      .filter((option) => option !== 'token-file')
      .map((option) => `--${option}`)
      .join(' | ')})
      return
      ;;
  esac
  case $command in
    '') words='${[...COMMAND_NAMES, '--help', '--version'].join(' ')}' ;;
${cases.join('\n')}
    *) return ;;
  esac
  if [[ $current == -* || -z $command || $command == completion ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}
complete -F _sluice_client ${PROGRAM}`;
}

function zshScript(): string {
  const commands = COMMAND_NAMES.map(
    (name) => `    ${quoted(`${name}:${COMMANDS[name].summary}`)}`,
  );
  const cases = COMMAND_NAMES.map((name) => {
    const { operands, optional, runs } = COMMANDS[name];
    const specs = [
      ...COMMANDS[name].options.map(zshOption),
      "'--help[print help]'",
      ...[...operands, ...(optional === undefined ? [] : [optional])].map((operand, i) =>
        operand === 'SHELL' ? `'${i + 1}:SHELL:(${SHELLS.join(' ')})'` : `'${i + 1}:${operand}:'`,
      ),
      ...(runs ? ["'*::CMD:_normal'"] : []),
    ];
    return `    ${name}) _arguments -S ${specs.join(' ')} ;;`;
  });
  return `# Completion of ${PROGRAM} for zsh: source <(${PROGRAM} completion zsh)
_sluice_client() {
  local -a commands
  commands=(
${commands.join('\n')}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
${cases.join('\n')}
  esac
}
compdef _sluice_client ${PROGRAM}`;
}

function zshOption(option: OptionName): string {
  const form = OPTIONS[option];
  const [repeated, equals] = [form.kind === 'texts' ? '*' : '', 'takes' in form ? '=' : ''];
  const value = 'takes' in form ? `:${form.takes}:${option === 'token-file' ? '_files' : ''}` : '';
  return quoted(`${repeated}--${option}${equals}[${form.text}]${value}`);
}

/** In fish: whether `--` is before the cursor. */
const IN_COMMAND_LINE = "'contains -- -- (commandline -opc)'";

function fishScript(): string {
  const lines = COMMAND_NAMES.flatMap((name) => {
    const seen = `-n '__fish_seen_subcommand_from ${name}'`;
    return [
      `-n __fish_use_subcommand -a ${name} -d ${quoted(COMMANDS[name].summary)}`,
      ...COMMANDS[name].options.map((option) => {
        const { text } = OPTIONS[option];
        const value = takesValue(option) ? (option === 'token-file' ? ' -r -F' : ' -x') : '';
        return `${seen} -l ${option}${value} -d ${quoted(text)}`;
      }),
      ...(name === 'completion' ? [`${seen} -a '${SHELLS.join(' ')}'`] : []),
      ...(COMMANDS[name].runs ? [`-n ${IN_COMMAND_LINE} -F -a '(__fish_complete_command)'`] : []),
    ];
  });
  return [
    `# Completion of ${PROGRAM} for fish: ${PROGRAM} completion fish | source`,
    `complete -c ${PROGRAM} -f`,
    ...lines.map((line) => `complete -c ${PROGRAM} ${line}`),
  ].join('\n');
}

/** For a shell. The texts have no quotes of their own. */
function quoted(text: string): string {
  return `'${text}'`;
}
