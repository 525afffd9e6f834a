import { type Algorithm, FIXED_WINDOW } from './limits.js';

export const ALGORITHM_NAMES = ['fixed_window', 'sliding_window', 'token_bucket'] as const;
export type AlgorithmName = (typeof ALGORITHM_NAMES)[number];

export const DEFAULT_STEPS = 10;
export const DEFAULT_BURST = 1;

/** Returns the algorithm of a name. Numbers that it does not have are ignored. */
export function algorithmOf(
  name: AlgorithmName,
  { steps = DEFAULT_STEPS, burst = DEFAULT_BURST }: { steps?: number; burst?: number },
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

/** Whether two limits with these algorithms count alike, if they have the same numbers otherwise. */
export function isSameAlgorithm(one: Algorithm, other: Algorithm): boolean {
  return numberOf(one) === numberOf(other) && one.name === other.name;
}

/** Its steps or its burst. A fixed window has neither. */
function numberOf(algorithm: Algorithm): number {
  if (algorithm.name === 'sliding_window') return algorithm.steps;
  return algorithm.name === 'token_bucket' ? algorithm.burst : 0;
}
