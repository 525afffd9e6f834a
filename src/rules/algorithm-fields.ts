import { z } from 'zod';

import { ALGORITHM_NAMES, type AlgorithmName, algorithmOf } from '../limiter/algorithms.js';
import { BOUNDS } from '../limiter/bounds.js';
import type { Algorithm } from '../limiter/limits.js';
import { wholeNumber } from './field-schemas.js';

/** The fields that say how the approvals of a limit count. They are one unit: a later rule replaces all of them. */
export const ALGORITHM_FIELDS = {
  algorithm: z
    .enum(ALGORITHM_NAMES, { error: `must be one of ${ALGORITHM_NAMES.join(', ')}` })
    .optional(),
  steps: wholeNumber(BOUNDS.steps).optional(),
  burst: wholeNumber(BOUNDS.burst).optional(),
};

const MAXIMA = ['max_requests_per_window', 'max_hits_per_window'] as const;

interface WithAlgorithm extends Readonly<
  Partial<Record<(typeof MAXIMA)[number], number | undefined>>
> {
  readonly algorithm?: AlgorithmName | undefined;
  readonly steps?: number | undefined;
  readonly burst?: number | undefined;
}

/** A check for a schema: adds an issue for a field that does not go with the algorithm or the maximum beside it. */
export function checkAlgorithmFields({ value, issues }: z.core.ParsePayload<WithAlgorithm>): void {
  const reject = (field: 'steps' | 'burst', message: string): void => {
    issues.push({ code: 'custom', path: [field], message, input: value });
  };
  const { algorithm, steps, burst } = value;
  const instead = algorithm === undefined ? 'beside it' : `beside it, not ${algorithm}`;
  if (steps !== undefined && algorithm !== 'sliding_window') {
    reject('steps', `must have algorithm: sliding_window ${instead}`);
  }
  if (burst === undefined) return;
  if (algorithm !== 'token_bucket') reject('burst', `must have algorithm: token_bucket ${instead}`);
  const maximum = MAXIMA.find((field) => value[field] !== undefined);
  const most = maximum === undefined ? undefined : value[maximum];
  if (most !== undefined && burst > most) {
    reject('burst', `must be at most ${maximum}, ${most}, not ${burst}`);
  }
}

/** Returns the algorithm of a rule or of one of its limits; undefined if it names none. */
export function algorithmIn({ algorithm, steps, burst }: WithAlgorithm): Algorithm | undefined {
  return algorithm && algorithmOf(algorithm, { steps, burst });
}
