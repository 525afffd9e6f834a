import { calendarOf, type Limit, type LimitInForce } from '../../../../src/limiter/limits.js';
import { defaultPolicy } from '../../../../src/rules/rules.js';
import { parseRules } from '../../../../src/rules/parse-rules.js';
import { RuleSet } from '../../../../src/rules/rule-set.js';
import { extent } from '../../extent.js';
import { DEFAULTS } from '../../settings.js';
import { ALL_KEYS, limitOf } from '../limits.js';
import { Random } from '../random.js';
import { asJson, asYaml, broken, drawRules, drawRulesWithZero } from './rules-text.js';
import { LONGEST_MILLIS } from './short-calendars.js';

const SEEDS = Array.from({ length: 50 }, (_, seed) => seed);

function policies(text: string): Promise<RuleSet> {
  return RuleSet.load(parseRules(text), defaultPolicy(DEFAULTS));
}

/** A limit as replicas have it whose calendars are short, with the name of its calendar. */
function shortened(limit: Limit): LimitInForce {
  const calendar = calendarOf(limit);
  if (!calendar) return limit;
  const { unit, timeZone } = calendar;
  const algorithm = { name: 'fixed_window', calendar: { unit, timeZone } } as const;
  return { ...limit, windowMillis: LONGEST_MILLIS[unit], algorithm };
}

test.each(SEEDS)('the limits are those that the rules give (seed %d)', async (seed) => {
  const declared = drawRulesWithZero(new Random(seed), 1);
  for (const text of [asJson(declared), asYaml(declared)]) {
    const rules = await policies(text);
    const limits = ALL_KEYS.flatMap((key) =>
      rules
        .policyOf(key)
        .limits.map((limit) => [limitOf(key, limit.name), shortened(limit)] as const),
    );
    expect(Object.fromEntries(limits)).toEqual(declared.limits);
  }
});

test.each(SEEDS)('no rules can be read from a broken text (seed %d)', (seed) => {
  const random = new Random(seed);
  const text = broken(random, drawRules(random, 1));
  expect(() => parseRules(text)).toThrow();
});

test('no beginning of the JSON is right', () => {
  const text = asJson(drawRules(new Random(1), 1));
  for (let length = 0; length < text.length; length += extent(7, 1)) {
    expect(() => parseRules(text.slice(0, length))).toThrow();
  }
});
