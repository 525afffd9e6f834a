import type { Calendar, CalendarName } from '../calendar/calendar.js';
import { fixedWindow, type FixedWindowAlgorithm } from './fixed-window.js';
import type { Kind } from './kind.js';
import { slidingWindow, type SlidingWindowAlgorithm } from './sliding-window.js';
import { tokenBucket, type TokenBucketAlgorithm } from './token-bucket.js';

/** How the approvals of a limit count. */
export type Algorithm<Named extends CalendarName = Calendar> =
  FixedWindowAlgorithm<Named> | SlidingWindowAlgorithm | TokenBucketAlgorithm;

/** The same as the store or a client has it: the name of a calendar, which need not be known here. */
export type NamedAlgorithm = Algorithm<CalendarName>;

export type AlgorithmName = Algorithm['name'];

type Kinds = { readonly [Name in AlgorithmName]: Kind<Extract<NamedAlgorithm, { name: Name }>> };

const KINDS: Kinds = {
  fixed_window: fixedWindow,
  sliding_window: slidingWindow,
  token_bucket: tokenBucket,
};

export const ALGORITHM_NAMES = Object.keys(KINDS) as [AlgorithmName, ...AlgorithmName[]];

/** The algorithm of a limit that names none. */
export const DEFAULT_ALGORITHM: Algorithm = { name: 'fixed_window' };

/** The kind of an algorithm, to be asked about it. */
export function kindOf<Of extends NamedAlgorithm>({ name }: Of): Kind<Of> {
  return KINDS[name] as unknown as Kind<Of>;
}

/** Says which algorithm it is, by its name in the rules, with its calendar or its numbers. */
export function describeAlgorithm(algorithm: NamedAlgorithm): string {
  return kindOf(algorithm).describe(algorithm);
}

const BY_STORED_NAME = new Map<string, (parameter: string) => NamedAlgorithm>(
  Object.values(KINDS).flatMap(({ ofStored }) => Object.entries(ofStored)),
);

/** The algorithm that the store has by this name and parameter; the default one without a known name. */
export function algorithmOfStored(name = '', parameter = ''): NamedAlgorithm {
  return BY_STORED_NAME.get(name)?.(parameter) ?? DEFAULT_ALGORITHM;
}
