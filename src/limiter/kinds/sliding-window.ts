import type { Kind } from './kind.js';

/** Never more than the maximum counts in any span of the window, which moves on in `steps`. */
export interface SlidingWindowAlgorithm {
  readonly name: 'sliding_window';
  readonly steps: number;
}

export const DEFAULT_STEPS = 10;

export const slidingWindow: Kind<SlidingWindowAlgorithm> = {
  hasBoundary: false,
  hasPace: false,
  storedNames: 2,
  hasSettableWindow: () => false,
  capacity: (_, maximum) => maximum,
  // It ends two of its steps later at most.
  longestCountMillis: (_, windowMillis) => 2 * windowMillis + 2,
  describe: ({ name, steps }) => `${name}, ${steps} steps`,
  shown: ({ name, steps }) => ({ Algorithm: name, Steps: steps }),
  toStored: ({ name, steps }) => [name, String(steps)],
  ofStored: { sliding_window: (steps) => ({ name: 'sliding_window', steps: Number(steps) }) },
};
