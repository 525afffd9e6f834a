import { type Algorithm, FIXED_WINDOW, type NamedAlgorithm } from './limits.js';

export const ALGORITHM_NAMES = ['fixed_window', 'sliding_window', 'token_bucket'] as const;
export type AlgorithmName = (typeof ALGORITHM_NAMES)[number];

export const DEFAULT_STEPS = 10;
export const DEFAULT_BURST = 1;

/** Returns the algorithm of a name. Numbers that it does not have are ignored. */
export function algorithmOf(
  name: AlgorithmName,
  {
    steps = DEFAULT_STEPS,
    burst = DEFAULT_BURST,
  }: { readonly steps?: number | undefined; readonly burst?: number | undefined },
): Algorithm {
  switch (name) {
    case 'fixed_window':
      return FIXED_WINDOW;
    case 'sliding_window':
      return { name, steps };
    case 'token_bucket':
      return { name, burst };
  }
}

/** Says which algorithm it is, by its name in the rules, with its calendar, its steps or its burst. */
export function algorithmText(algorithm: NamedAlgorithm): string {
  switch (algorithm.name) {
    case 'fixed_window': {
      const { calendar } = algorithm;
      return calendar ? `calendar ${calendar.unit}, ${calendar.timeZone}` : algorithm.name;
    }
    case 'sliding_window':
      return `${algorithm.name}, ${algorithm.steps} steps`;
    case 'token_bucket':
      return `${algorithm.name}, burst ${algorithm.burst}`;
  }
}
