import type { LogLine } from '../../replica-process.js';
import type { Exit, Member } from '../fleet.js';

/**
 * What a replica must never do, whatever happens to it.
 * @param mayLog the errors that are no fault of a replica
 */
export function misbehaviour(
  members: readonly Member[],
  exits: readonly Exit[],
  mayLog: (line: LogLine) => boolean = () => false,
): string[] {
  return [
    ...members.flatMap(({ index, process }) => {
      const errors = process.log.filter(
        (line) => (line.level === 'error' || line.level === 'fatal') && !mayLog(line),
      );
      const lines = errors.map((line) => `replica ${index} logged ${JSON.stringify(line)}`);
      return process.stderr === '' ? lines : [...lines, `replica ${index} said ${process.stderr}`];
    }),
    ...exits
      .filter(({ code }) => code !== 0)
      .map(({ member, code }) => `replica ${member.index} ended with ${code} on SIGTERM`),
  ];
}
