/**
 * What others ask of a kind of limit instead of its name. How it counts is in `memory/limits` and `lua/limits`, in files of
 * the same names.
 */
export interface Kind<Algorithm> {
  /**
   * Its windows end for all approvals at once. Other rules come into force then, a vendor's report counts until then, and
   * hits can be given back without their approvals.
   */
  readonly hasBoundary: boolean;
  /** Whether waiters are let go one by one, at an even pace, since it fills up by hits. */
  readonly hasPace: boolean;
  /** In how many names the store keeps what approvals take of it. */
  readonly storedNames: 1 | 2;
  /** Whether requests may set the length of its windows, as far as it depends on the kind. */
  readonly hasSettableWindow: (algorithm: Algorithm) => boolean;
  /** How much may count of it at once. */
  readonly capacity: (algorithm: Algorithm, maximum: number) => number;
  /** For how long an approval may count, in milliseconds. */
  readonly longestCountMillis: (algorithm: Algorithm, windowMillis: number) => number;
  /** Says which algorithm it is, by its name in the rules, with its numbers. */
  readonly describe: (algorithm: Algorithm) => string;
  /** What `/debug` shows of it, if anything. */
  readonly shown: (algorithm: Algorithm) => ShownAlgorithm;
  /** What the store has of it: its name there and one parameter. Undefined for the kind that the store takes without a name. */
  readonly toStored: (
    algorithm: Algorithm,
  ) => readonly [name: string, parameter: string] | undefined;
  /** The opposite, by the names that it has in the store. */
  readonly ofStored: Readonly<Record<string, (parameter: string) => Algorithm>>;
}

/** The fields of `/debug` that say how the approvals of a limit count. */
export interface ShownAlgorithm {
  readonly Algorithm?: string | undefined;
  readonly Steps?: number | undefined;
  readonly Burst?: number | undefined;
  readonly Calendar?: string | undefined;
  readonly TimeZone?: string | undefined;
}
