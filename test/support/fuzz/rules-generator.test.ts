import { parseRules } from '../../../src/rules/parse-rules.js';
import { Random } from '../chaos/random.js';
import { drawRule } from './rules-generator.js';

const DRAWN = Array.from({ length: 1000 }, (_, seed) => drawRule(new Random(seed), 'key'));

function isAccepted(rule: object): boolean {
  try {
    parseRules(JSON.stringify({ keys: [rule] }));
    return true;
  } catch {
    return false;
  }
}

test('the rules that are drawn are as valid as the account says', () => {
  expect(DRAWN.filter(({ rule, isValid }) => isAccepted(rule) !== isValid)).toEqual([]);
});

test('calendars are drawn in valid and in invalid rules, of own and of further limits', () => {
  const drawn = new Set(
    DRAWN.map(({ isValid, isFurther, calendar }) =>
      [isValid, isFurther, calendar?.unit ?? 'none'].join(' '),
    ),
  );
  expect(drawn.size).toBe(2 * 2 * 4);
});
