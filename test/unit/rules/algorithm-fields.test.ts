import {
  ALGORITHM_NAMES,
  type AlgorithmName,
  algorithmOf,
} from '../../../src/limiter/algorithms.js';
import { parseRules } from '../../../src/rules/parse-rules.js';
import { RuleSet } from '../../../src/rules/rule-set.js';
import { defaultPolicy } from '../../../src/rules/rules.js';
import { DEFAULTS } from '../../support/settings.js';

const NAMES = [undefined, ...ALGORITHM_NAMES, 'gcra'];
const STEPS = [undefined, 1, 2, 60, 61, 2.5, '5'];
const BURSTS = [undefined, 0, 1, 7, 8, 1_000_000_000, 1_000_000_001, 1.5, '5'];
const MAXIMUM = 7;

interface Fields {
  readonly algorithm?: string;
  readonly steps?: unknown;
  readonly burst?: unknown;
}

/** Every combination of the fields. Those without a value are left out. */
const COMBINATIONS: readonly Fields[] = NAMES.flatMap((algorithm) =>
  STEPS.flatMap((steps) =>
    BURSTS.map((burst) => ({
      ...(algorithm !== undefined && { algorithm }),
      ...(steps !== undefined && { steps }),
      ...(burst !== undefined && { burst }),
    })),
  ),
);

/** The fields that are wrong beside the others. */
function wrongIn({ algorithm, steps, burst }: Fields, maximum: number): string[] {
  const isWithin = (value: unknown, min: number, max: number): boolean =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
  const isKnown = algorithm === undefined || ALGORITHM_NAMES.some((name) => name === algorithm);
  const isSteps = algorithm === 'sliding_window' && isWithin(steps, 2, 60);
  const isBurst = algorithm === 'token_bucket' && isWithin(burst, 1, Math.min(1e9, maximum));
  return [
    ...(isKnown ? [] : ['algorithm']),
    ...(steps === undefined || isSteps ? [] : ['steps']),
    ...(burst === undefined || isBurst ? [] : ['burst']),
  ];
}

/** A file with one rule. */
function fileOf(fields: object): string {
  return JSON.stringify({ keys: [{ key_pattern: 'key', ...fields }] });
}

const limit = { name: 'further', window_millis: 1000 };

test.each([
  ['a rule', (fields: Fields) => fields, Infinity],
  [
    'a rule with a maximum',
    (fields: Fields) => ({ max_requests_per_window: MAXIMUM, ...fields }),
    7,
  ],
  [
    'a limit of requests',
    (fields: Fields) => ({ limits: [{ ...limit, max_requests_per_window: MAXIMUM, ...fields }] }),
    MAXIMUM,
  ],
  [
    'a limit of hits',
    (fields: Fields) => ({ limits: [{ ...limit, max_hits_per_window: MAXIMUM, ...fields }] }),
    MAXIMUM,
  ],
])(
  '%s has the algorithm of its fields, or the file is rejected for a wrong one',
  (_, rule, maximum) => {
    for (const fields of COMBINATIONS) {
      const [text, wrong] = [fileOf(rule(fields)), wrongIn(fields, maximum)];
      if (wrong.length > 0) {
        const named = `keys\\[0\\]\\.(limits\\[0\\]\\.)?(${wrong.join('|')}) must `;
        expect(() => parseRules(text)).toThrow(new RegExp(named));
      } else {
        const { algorithm = 'fixed_window', ...numbers } = fields;
        const { limits } = new RuleSet(parseRules(text), defaultPolicy(DEFAULTS)).policyOf('key');
        const expected = algorithmOf(algorithm as AlgorithmName, numbers as { steps?: number });
        expect(limits.at(-1)?.algorithm).toEqual(expected);
      }
    }
  },
);
