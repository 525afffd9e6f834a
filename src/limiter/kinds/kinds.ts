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

const KINDS = {
  fixed_window: fixedWindow,
  sliding_window: slidingWindow,
  token_bucket: tokenBucket,
} satisfies { readonly [Name in AlgorithmName]: Kind<Extract<NamedAlgorithm, { name: Name }>> };

export const ALGORITHM_NAMES = Object.keys(KINDS) as [AlgorithmName, ...AlgorithmName[]];

type ParameterOfKind = NonNullable<(typeof KINDS)[AlgorithmName]['parameter']>;

/** The parameters of all kinds, in their order, each with the algorithm that takes it. */
export const PARAMETERS = ALGORITHM_NAMES.flatMap((algorithm) => {
  const { parameter } = KINDS[algorithm];
  return parameter ? [{ ...parameter, algorithm }] : [];
});

/** Returns one value for each parameter, by one of its names. */
export function forEachParameter<Name extends 'field' | 'setting' | 'shown', Value>(
  name: Name,
  valueOf: (parameter: ParameterOfKind) => Value,
): Record<ParameterOfKind[Name], Value> {
  const values = PARAMETERS.map((parameter) => [parameter[name], valueOf(parameter)]);
  return Object.fromEntries(values) as Record<ParameterOfKind[Name], Value>;
}

/** The parameters that rules or settings give, by their names in rules. */
export type GivenParameters = Readonly<
  Partial<Record<ParameterOfKind['field'], number | undefined>>
>;

/** The algorithm of a limit that names none. */
export const DEFAULT_ALGORITHM: FixedWindowAlgorithm = { name: 'fixed_window' };

/** Returns the algorithm of a name. Parameters that it does not take are ignored; one that is missing has its default. */
export function algorithmOf(name: AlgorithmName, given: GivenParameters): Algorithm {
  if (name === DEFAULT_ALGORITHM.name) return DEFAULT_ALGORITHM;
  const taken = PARAMETERS.filter(({ algorithm }) => algorithm === name);
  const values = taken.map(({ field, default: value }) => [field, given[field] ?? value]);
  return { name, ...Object.fromEntries(values) } as Algorithm;
}

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

/**
 * The algorithm that the store has by this name and parameter; the default one without a name.
 * @throws Error for a name that this version does not know
 */
export function algorithmOfStored(name = '', parameter = ''): NamedAlgorithm {
  if (name === '') return DEFAULT_ALGORITHM;
  const decode = BY_STORED_NAME.get(name);
  if (!decode) throw new Error(`no algorithm of the store: ${name}`);
  return decode(parameter);
}
