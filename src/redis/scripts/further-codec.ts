import type { FurtherLimit, FurtherState } from '../../limiter/further-limits.js';

/** The rest of a text of `lua/lib/limits-text.lua`: a comma and the limit, for each further limit. */
export function encodeFurther(further: readonly FurtherLimit[]): string {
  return further
    .map(({ name, windowMillis, maximum, counts, keepsReleased }) => {
      const kept = keepsReleased ? ':kept' : '';
      return `,${name}=${windowMillis}:${maximum}:${counts}${kept}`;
    })
    .join('');
}

/** The further limits in such a text, or in a whole text of limits. */
export function furtherIn(limits: string): FurtherLimit[] {
  return textsByName(limits).map(([name, text]) => {
    const [windowMillis = '', maximum = '', counts, kept] = text.split(':');
    return {
      name,
      windowMillis: Number(windowMillis),
      maximum: Number(maximum),
      counts: counts === 'hits' ? 'hits' : 'requests',
      keepsReleased: kept === 'kept',
    };
  });
}

/**
 * The states of further limits.
 * @param limits the rest of a text of limits
 * @param taken `<name>=<taken>:<ms until the window ends>` for each, with a comma between two
 * @returns undefined if there are none
 */
export function furtherStatesIn(limits: string, taken: string): FurtherState[] | undefined {
  if (limits === '') return undefined;
  const numbers = numbersByName(taken);
  return furtherIn(limits).map((limit) => {
    const [approved = 0, millisToWindowEnd = 0] = numbers.get(limit.name) ?? [];
    return { ...limit, approved, millisToWindowEnd };
  });
}

/** The two numbers of each limit in a text of `<name>=<number>:<number>` with a comma between two. */
export function numbersByName(text: string): Map<string, number[]> {
  return new Map(
    textsByName(text).map(([name, numbers]) => [name, numbers.split(':').map(Number)]),
  );
}

/** What follows each name. A part without a name is left out. */
function textsByName(text: string): [name: string, text: string][] {
  return text.split(',').flatMap((part): [string, string][] => {
    const [name = '', value] = part.split('=');
    return value === undefined ? [] : [[name, value]];
  });
}
