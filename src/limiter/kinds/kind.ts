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
  /** The number that it takes besides the maximum and the window's length, if any. */
  readonly parameter: Parameter | undefined;
  /** Says which algorithm it is, by its name in the rules, with its numbers. */
  readonly describe: (algorithm: Algorithm) => string;
  /** What `/debug` shows of it, if anything. */
  readonly shown: (algorithm: Algorithm) => Readonly<Record<string, string | number>>;
  /** What the store has of it: its name there and one parameter. Undefined for the kind that the store takes without a name. */
  readonly toStored: (
    algorithm: Algorithm,
  ) => readonly [name: string, parameter: string] | undefined;
  /** The opposite, by the names that it has in the store. */
  readonly ofStored: Readonly<Record<string, (parameter: string) => Algorithm>>;
}

/** A number that only one kind of limit takes. */
export interface Parameter {
  /** Its names in rules, among the settings, and in `/debug`. */
  readonly field: string;
  readonly setting: string;
  readonly shown: string;
  readonly bounds: { readonly min: number; readonly max: number };
  readonly isAtMostMaximum: boolean;
  readonly default: number;
  /** For the OpenAPI document. */
  readonly description: string;
  readonly describe: (value: number) => string;
}

type Numbered<Name extends string, Field extends string> = { readonly name: Name } & Readonly<
  Record<Field, number>
>;

/** The facts that a kind has by its parameter. */
export function withParameter<const Name extends string, const Of extends Parameter>(
  name: Name,
  parameter: Of,
) {
  const { field, shown, describe } = parameter;
  type Algorithm = Numbered<Name, Of['field']>;
  const valueOf = (algorithm: Algorithm): number => algorithm[field as Of['field']];
  return {
    parameter,
    describe: (algorithm: Algorithm) => `${name}, ${describe(valueOf(algorithm))}`,
    shown: (algorithm: Algorithm) => ({ Algorithm: name, [shown]: valueOf(algorithm) }),
    toStored: (algorithm: Algorithm) => [name, String(valueOf(algorithm))] as const,
    ofStored: { [name]: (text: string) => ({ name, [field]: Number(text) }) as Algorithm },
  };
}
