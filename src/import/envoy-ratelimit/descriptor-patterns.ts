import { encoded, encodedName, keyTemplate } from '../../grpc/key-template.js';

/** The keys of descriptors by the default GRPC_KEY_TEMPLATE, which the rules are for. */
const keyOf = keyTemplate('{domain}:{entries}');

/** In a key, a comma in a value is encoded. */
const ANY_VALUE = '[^,]*';
const WILDCARD = '*';

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

/** The patterns of the keys of a domain's descriptors. */
export class DescriptorPattern {
  private constructor(
    private readonly domain: string,
    private readonly entries: readonly NamedEntry[],
  ) {}

  static of(domain: string): DescriptorPattern {
    return new DescriptorPattern(domain, []);
  }

  with(entry: NamedEntry): DescriptorPattern {
    return new DescriptorPattern(this.domain, [...this.entries, entry]);
  }

  /** The descriptors with exactly these entries. */
  get own(): { readonly key_pattern: string; readonly key_pattern_is_regex?: true } {
    if (this.entries.every((entry) => kindOf(entry) === 'exact')) {
      return { key_pattern: keyOf(this.domain, this.entries) };
    }
    return { key_pattern: this.#expression, key_pattern_is_regex: true };
  }

  /** The descriptors with further entries. */
  get deeper(): { readonly key_pattern: string; readonly key_pattern_is_regex: true } {
    const separator = this.entries.length > 0 ? ',' : '';
    return { key_pattern: `${this.#expression}${separator}.*`, key_pattern_is_regex: true };
  }

  get #expression(): string {
    const entries = this.entries.map(({ key, value }) => {
      const parts = value.split(WILDCARD).map((part) => quoted(encoded(part)));
      return `${quoted(encodedName(key))}=${value === '' ? ANY_VALUE : parts.join(ANY_VALUE)}`;
    });
    return `${quoted(encodedName(this.domain))}:${entries.join()}`;
  }
}

/** A text as an expression of RE2 that matches it alone. */
function quoted(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&');
}
