/** They could break a line, change the terminal, or show the text in another order. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** A text for a line of a terminal: other callers choose keys. What would not be seen as itself is written as `\u009b`. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
