import { setTimeout as delay } from 'node:timers/promises';

/** Longer than a third of a lease, after which a replica extends the expiry of a name that it uses. */
const BETWEEN_LOOKS_MILLIS = 1000;
/** The longest allowed expiry: a longer one would in effect be no expiry. */
const MOST_MILLIS = 60_000;

type Send = (...command: [name: string, ...args: string[]]) => Promise<unknown>;

/**
 * Checks the names in a Redis that match a pattern and should no longer be used. All must expire soon, and no replica
 * may extend their expiry. So Redis will remove them by itself, and a test need not wait for it.
 * @param send sends a command to a server of version 7 or newer
 * @returns the problem of each name that stays
 */
export async function lingeringNames(send: Send, pattern = '*'): Promise<string[]> {
  const before = await expiries(send, pattern);
  await delay(BETWEEN_LOOKS_MILLIS);
  const after = await expiries(send, pattern);
  const latest = Date.now() + MOST_MILLIS;
  return [...after].flatMap(([name, expiresAt]) => {
    if (expiresAt < 0) return [`${name} never expires`];
    if (expiresAt > latest) return [`${name} expires in more than ${MOST_MILLIS} ms`];
    if (!before.has(name)) return [`${name} was made`];
    return before.get(name) === expiresAt ? [] : [`the end of ${name} was put off`];
  });
}

/** When each of the names expires, in milliseconds since 1970; a negative number for never. */
async function expiries(send: Send, pattern: string): Promise<Map<string, number>> {
  const names = (await send('KEYS', pattern)) as string[];
  const found = await Promise.all(
    names.map(async (name) => [name, (await send('PEXPIRETIME', name)) as number] as const),
  );
  /** -2 means that a name has expired in the meantime. */
  return new Map(found.filter(([, expiresAt]) => expiresAt !== -2));
}
