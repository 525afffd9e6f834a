import { type Asked, helpText, parseCommandLine } from './arguments.js';
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

async function carryOut(asked: Asked): Promise<number> {
  switch (asked.command) {
    case 'run':
      return run(asked);
    case 'check':
      return check(asked);
    case 'release':
      return release(asked);
    case 'peek':
      return peek(asked);
    case 'pause':
      return pause(asked);
    case 'top':
      return top(asked);
    case 'completion':
      await print(...completion(asked.operands).split('\n'));
      return EXIT.OK;
    case 'help':
      await print(...helpText(asked.about));
      return EXIT.OK;
    case 'version':
      await print(programVersion());
      return EXIT.OK;
  }
}
