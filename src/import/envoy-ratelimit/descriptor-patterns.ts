import { CUT_MARK, encoded, encodedName, keyTemplate } from '../../grpc/key-template.js';
import { type KeyPattern, KeyPatterns } from '../../rules/key-patterns.js';

/** The keys of descriptors by the default GRPC_KEY_TEMPLATE, which the rules are for. */
const keyOf = keyTemplate('{domain}:{entries}');

/** In a key, a comma in a value is encoded. */
const ANY_VALUE = '[^,]*';
/** Any text before another text. Without the encoded characters as units, `%25` would end in the text `5`. */
const ANY_TEXT = `(?:[^%,]|%2[5C]|${CUT_MARK})*`;
const WILDCARD = '*';
/** Longer than a key. */
const LONG_TEXT = 'x'.repeat(600);

/** How exactly an entry of a descriptor is named. The exact one applies first. */
export type Kind = 'any' | 'wildcard' | 'exact';

/** An entry of a descriptor, as the configuration names it. */
interface NamedEntry {
  readonly key: string;
  /** '' matches all. */
  readonly value: string;
}

export function kindOf({ value }: Pick<NamedEntry, 'value'>): Kind {
  if (value === '') return 'any';
  return value.includes(WILDCARD) ? 'wildcard' : 'exact';
}

export class DescriptorPattern {
  constructor(
    private readonly domain: string,
    private readonly entries: readonly NamedEntry[] = [],
  ) {}

  with(entry: NamedEntry): DescriptorPattern {
    return new DescriptorPattern(this.domain, [...this.entries, entry]);
  }

  /** The descriptors with exactly these entries. @param isLimit see {@link expressionOf} */
  own(isLimit: boolean): KeyPattern {
    if (this.entries.every((entry) => kindOf(entry) === 'exact')) {
      return { key_pattern: keyOf(this.domain, this.entries) };
    }
    return { key_pattern: this.#expression(isLimit), key_pattern_is_regex: true };
  }

  /** The descriptors with further entries. */
  get deeper(): KeyPattern {
    const separator = this.entries.length > 0 ? ',' : '';
    const pattern = `${this.#expression(false)}${separator}.*`;
    return { key_pattern: pattern, key_pattern_is_regex: true };
  }

  /** Whether a limit applies to all descriptors with exactly these entries, also if values are so long that keys are cut. */
  get limitsLongValues(): boolean {
    const own = this.own(true);
    const longest = this.entries.map(({ key, value }) => ({
      key,
      value: value === '' ? LONG_TEXT : value.replaceAll(WILDCARD, LONG_TEXT),
    }));
    const matching = new KeyPatterns([own]).matching(keyOf(this.domain, longest));
    return !own.key_pattern_is_regex || matching.length > 0;
  }

  #expression(isLimit: boolean): string {
    const entries = this.entries.map(
      ({ key, value }) => `${quoted(encodedName(key))}=${expressionOf(value, isLimit)}`,
    );
    return `${quoted(encodedName(this.domain))}:${entries.join()}`;
  }
}

/** @param isLimit whether it also matches a value that may have the texts between wildcards in its middle, which is cut */
function expressionOf(value: string, isLimit: boolean): string {
  if (value === '') return ANY_VALUE;
  const [first = '', ...others] = value.split(WILDCARD).map((part) => quoted(encoded(part)));
  const last = others.pop();
  if (last === undefined) return first;
  const between = others.map((part) => (part === '' ? '' : ANY_TEXT + part)).join('');
  const rest = last === '' ? ANY_VALUE : ANY_TEXT + last;
  if (between === '' || !isLimit) return first + between + rest;
  return `${first}(?:${between}|${ANY_TEXT}${CUT_MARK})${rest}`;
}

/** A text as an expression of RE2 that matches it alone. */
function quoted(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&');
}
