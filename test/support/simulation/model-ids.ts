import { REPLICA_NAMES } from './shape.js';

/** An id of the simulation, of up to eight characters, as the embedded limiter has it. The order of ids stays. */
export function uuidOf(id: string): string {
  const digits = Buffer.from(id).toString('hex').padEnd(16, '0');
  return `00000000-0000-4000-${digits.slice(0, 4)}-${digits.slice(4)}`;
}

/** The owner of a request, `<replica>#<number>`, as the embedded limiter has it. */
export function numberOf(owner: string): number {
  const [replica = '', number = ''] = owner.split('#');
  // Of an approval that belongs to no check.
  if (number === '0') return 0;
  return (
    Number(number) * REPLICA_NAMES.length + REPLICA_NAMES.findIndex((name) => name === replica)
  );
}

export function idOf(uuid: string): string {
  const digits = uuid
    .slice(19)
    .replace('-', '')
    .replace(/(00)*$/, '');
  return Buffer.from(digits, 'hex').toString();
}
