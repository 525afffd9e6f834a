import { jest } from '@jest/globals';

import { RuleSet } from '../../../src/rules/rule-set.js';
import { checkMany } from '../../support/bulk-client.js';
import { ratePath, send } from '../../support/http-client.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';

/** Expressions without a text that could rule out a key, so that each costs an automaton. */
const COSTLY = Array.from({ length: 40 }, (_, i) => `(?i).*:svc${i}:.*`);
const OWNER = { name: 'owner', token: 'token-for-all-keys', scopes: ['check'] };
const TEAM = {
  name: 'team',
  token: 'token-for-keys-of-the-team',
  scopes: ['check'],
  key_patterns: COSTLY,
};
const WATCHER = {
  name: 'watcher',
  token: 'token-for-the-numbers-of-the-team',
  scopes: ['debug'],
  key_patterns: COSTLY,
};
/** Fewest single checks that are answered, one after the other, while 1000 new keys are matched. */
const ANSWERED_MEANWHILE = 20;

const app = useApp(() => ({ MAX_REQUESTS: '100000' }), {
  rules: COSTLY.map((pattern) => ({ key_pattern: pattern, key_pattern_is_regex: true })),
  tokens: [OWNER, TEAM, WATCHER],
});
afterEach(() => {
  jest.restoreAllMocks();
});

const newElements = (): { key: string }[] =>
  Array.from({ length: 1000 }, (_, i) => ({
    key: `${uniqueKey()}${i}`.padEnd(500, `;svc${i % 40}`),
  }));

test.each([
  ['decided by costly rules', OWNER, 200],
  ["rejected by the costly key patterns of the caller's token", TEAM, 403],
])('single checks are answered while a bulk request is %s', async (_how, caller, status) => {
  const results = await amongChecks(() => checkMany(app.url, newElements(), { ...bearer(caller) }));

  expect(new Set(results.map((result) => result.status))).toEqual(new Set([status]));
});

test.each(['/debug', '/ui/data'])(
  "single checks are answered while %s matches all keys with the key patterns of the caller's token",
  async (path) => {
    await checkMany(app.url, newElements(), { ...bearer(OWNER) });
    const answer = await amongChecks(() => send(app.url, 'GET', path, bearer(WATCHER)));

    expect(answer.status).toBe(200);
  },
);

/** The result of a call, during which single checks have to be answered. */
async function amongChecks<T>(call: () => Promise<T>): Promise<T> {
  const key = uniqueKey();
  const progress = { isAnswered: false, answeredMeanwhile: 0 };
  const result = call().finally(() => {
    progress.isAnswered = true;
  });
  while (!progress.isAnswered) {
    expect((await send(app.url, 'POST', ratePath(key), bearer(OWNER))).status).toBe(200);
    progress.answeredMeanwhile += 1;
  }
  expect(progress.answeredMeanwhile).toBeGreaterThan(ANSWERED_MEANWHILE);
  return result;
}

test('rules are not matched for a key that the caller may not use', async () => {
  const matching = jest.spyOn(RuleSet.prototype, 'matching');
  const [first, ...others] = newElements();
  const path = `${ratePath(first?.key ?? '')}?maxRequests=5`;
  expect((await send(app.url, 'POST', path, bearer(TEAM))).status).toBe(403);
  await checkMany(app.url, others.slice(0, 10), { ...bearer(TEAM) });
  expect(matching).not.toHaveBeenCalled();
});
