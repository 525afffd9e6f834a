import type { Exit, Member } from '../fleet.js';

/** What a replica must never do, whatever happens to it. */
export function misbehaviour(members: readonly Member[], exits: readonly Exit[]): string[] {
  return [
    ...members.flatMap(({ place, process }) => {
      const errors = process.log.filter(({ level }) => level === 'error' || level === 'fatal');
      const lines = errors.map((line) => `replica ${place} logged ${JSON.stringify(line)}`);
      return process.stderr === '' ? lines : [...lines, `replica ${place} said ${process.stderr}`];
    }),
    ...exits
      .filter(({ code }) => code !== 0)
      .map(({ member, code }) => `replica ${member.place} ended with ${code} on SIGTERM`),
  ];
}
