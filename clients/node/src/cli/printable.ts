/** They could break a line, change the terminal, or show the text in another order. No file can have halves of surrogate pairs. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/gu;

/** A text for a line of a terminal: other callers choose keys. What would not be seen as itself is written as `\u009b`, also in JSON. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
