import { type Kind, withParameter } from './kind.js';

/** Never more than the maximum counts in any span of the window, which moves on in `steps`. */
export interface SlidingWindowAlgorithm {
  readonly name: 'sliding_window';
  readonly steps: number;
}

export const slidingWindow = {
  hasBoundary: false,
  hasPace: false,
  storedNames: 2,
  hasSettableWindow: () => false,
  capacity: (_, maximum) => maximum,
  // It ends two of its steps later at most.
  longestCountMillis: (_, windowMillis) => 2 * windowMillis + 2,
  ...withParameter('sliding_window', {
    field: 'steps',
    setting: 'WINDOW_STEPS',
    shown: 'Steps',
    bounds: { min: 2, max: 60 },
    isAtMostMaximum: false,
    default: 10,
    description: 'The steps of a sliding window.',
    describe: (steps: number) => `${steps} steps`,
  }),
} satisfies Kind<SlidingWindowAlgorithm>;
