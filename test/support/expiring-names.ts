import { setTimeout as delay } from 'node:timers/promises';

/** Longer than replicas that use a name wait before they put its end off: a third of a lease. */
const BETWEEN_LOOKS_MILLIS = 1000;
/** What a name may have left: more would be as good as for ever. */
const MOST_MILLIS = 60_000;

type Send = (...command: [name: string, ...args: string[]]) => Promise<unknown>;

/**
 * Looks at the names in a Redis that match a pattern, which nobody should use any more. All must expire soon, by an
 * expiry that nobody puts off. So Redis removes them without anybody's help, and a test need not wait for that.
 * @param send sends a command to a server, of version 7 or newer
 * @returns what is said of names that stay
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
  /** -2 is of one that has gone meanwhile. */
  return new Map(found.filter(([, expiresAt]) => expiresAt !== -2));
}
