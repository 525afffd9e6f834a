/** UTF-8 bytes of a holder and of a group. Sluice rejects a longer text. */
export const MOST_BYTES = 64;
/** Half of a character: it has no UTF-8. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** What is wrong with a text if it can't be sent. */
export function notUnicode(name: string, text: string): TypeError | undefined {
  if (!LONE_SURROGATE.test(text)) return undefined;
  const shown = JSON.stringify(text);
  return new TypeError(`${name} is not valid Unicode: ${shown} has half of a surrogate pair`);
}

/** What is wrong with a text if it is empty or too long. */
export function notShort(name: string, text: string): RangeError | undefined {
  const bytes = Buffer.byteLength(text);
  if (bytes >= 1 && bytes <= MOST_BYTES) return undefined;
  return new RangeError(`${name} must be 1 to ${MOST_BYTES} bytes of UTF-8, not ${bytes}`);
}

/** What is wrong with the name of a group, of which a caller in JavaScript may give a number. */
export function faultOfGroup(group: unknown): Error | undefined {
  if (group === undefined) return undefined;
  if (typeof group !== 'string')
    return new TypeError(`group must be a text, not ${JSON.stringify(group)}`);
  return notUnicode('group', group) ?? notShort('group', group);
}
