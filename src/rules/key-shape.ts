/** ASCII punctuation, which stands for itself after a backslash. */
const PUNCTUATION = String.raw`[!-\/:-@\[-\x60\{-~]`;

/**
 * The next part of an expression, by RE2's syntax: https://github.com/google/re2/wiki/Syntax. A character that may be
 * absent or repeated is no literal.
 */
const PART = new RegExp(
  [
    String.raw`(?<anything>\.\*\??)`,
    String.raw`(?:\\(?<escaped>${PUNCTUATION})|(?<literal>[ !"#%&',\-\/\w:;<=>@\x60~]))(?![*+?\{])`,
    String.raw`(?<open>\((?:\?:|(?!\?)))`,
    String.raw`(?<close>\))`,
    String.raw`(?<either>\|)`,
    // A repetition, a class, an escape, and any other character.
    String.raw`\{\d+(?:,\d*)?\}`,
    String.raw`\[\^?\]?(?:\[:\^?\w+:\]|\\[^]|[^\]\\])*\]`,
    String.raw`\\(?:[dDsSwWbBAz]|${PUNCTUATION})`,
    String.raw`[^\\\[\(]`,
  ].join('|'),
  'uy',
);

/** What keys must look like to match an expression. Checking it costs far less than the expression. */
export interface KeyShape {
  /** Whether a key has everything that all matches have in common. */
  fits(key: string): boolean;
  /** Whether the keys that fit and have no line break are exactly the matches. */
  readonly isAll: boolean;
}

const ANY: KeyShape = { fits: () => true, isAll: false };

/** @param expression without problems */
export function shapeOf(expression: string): KeyShape {
  // A key is matched as a whole.
  const body = expression.replace(/^\^/, '').replace(/(?<!\\)\$$/, '');
  /** The literal texts, in order. The first begins a key, and the last ends it. */
  const texts: string[] = [];
  let current = '';
  let isAll = true;
  let depth = 0;
  PART.lastIndex = 0;
  while (PART.lastIndex < body.length) {
    const part = PART.exec(body)?.groups;
    // After a flag or a rare notation, the rest may mean anything.
    if (!part) return ANY;
    if (part.open !== undefined) depth += 1;
    if (part.close !== undefined) depth -= 1;
    if (part.either !== undefined && depth === 0) return ANY;
    const text = part.literal ?? part.escaped;
    if (depth === 0 && text !== undefined) {
      current += text;
      continue;
    }
    isAll &&= part.anything !== undefined;
    texts.push(current);
    current = '';
  }
  return { fits: fitting([...texts, current]), isAll };
}

/** @returns whether a key begins with the first text, ends with the last, and has the others in between, in order */
function fitting(texts: readonly string[]): KeyShape['fits'] {
  const [first = '', ...others] = texts;
  const last = others.pop();
  if (last === undefined) return (key) => key === first;
  const between = others.filter((text) => text !== '');
  return (key) => {
    if (!key.startsWith(first) || !key.endsWith(last)) return false;
    let position = first.length;
    for (const text of between) {
      const start = key.indexOf(text, position);
      if (start < 0) return false;
      position = start + text.length;
    }
    return position <= key.length - last.length;
  };
}
