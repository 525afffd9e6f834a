import {
  type Asked,
  type CommandName,
  helpText,
  type Invocation,
  parseCommandLine,
} from './arguments.js';
import { check } from './check.js';
import { completion } from './completion.js';
import { CommandLineError, EXIT, OutputError, PROGRAM, programVersion } from './errors.js';
import { print, writeLine } from './messages.js';
import { pause } from './pause.js';
import { peek } from './peek.js';
import { release } from './release.js';
import { run } from './run.js';
import { top } from './top.js';

/** Carries out a command line. @returns the exit code */
export async function main(args: readonly string[]): Promise<number> {
  try {
    return await carryOut(parseCommandLine(args));
  } catch (error) {
    if (error instanceof OutputError) {
      writeLine(`${PROGRAM}: ${error.message}`);
      return EXIT.UNWRITABLE;
    }
    if (!(error instanceof CommandLineError)) throw error;
    writeLine(`${PROGRAM}: ${error.message}; see ${PROGRAM} --help`);
    return EXIT.USAGE;
  }
}

/** Each returns its exit code, and throws a CommandLineError if the options are wrong. */
const COMMANDS: Readonly<Record<CommandName, (asked: Invocation) => Promise<number>>> = {
  run,
  check,
  release,
  peek,
  pause,
  top,
  completion,
};

async function carryOut(asked: Asked): Promise<number> {
  if (asked.command === 'help') await print(...helpText(asked.about));
  else if (asked.command === 'version') await print(programVersion());
  else return COMMANDS[asked.command](asked);
  return EXIT.OK;
}
