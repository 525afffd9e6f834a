import { createLimiter } from '../../src/app/create-limiter.js';
import { parseSettings } from '../../src/config/settings.js';
import { StoreUnavailableError } from '../../src/limiter/errors.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import { withoutRules } from '../../src/rules/rules.js';
import { contentsOfKey } from '../support/key-contents.js';
import { type RecordedLog, recordLog } from '../support/recorded-log.js';
import { unobserved } from '../support/unguarded.js';
import { uniqueKey } from '../support/unique-key.js';
import { useRedis } from '../support/use-redis.js';

const redis = useRedis();
const ID = '3f0e8f0c-7f1c-4c8e-9d53-0c8f4a6f0c11';

let limiter: Limiter;
let log: RecordedLog;
let key: string;
let state: string;

beforeEach(async () => {
  const settings = parseSettings({
    REDIS_URL: redis.url,
    STORE_TIMEOUT_MILLIS: '30000',
    WINDOW_MILLIS: '3600000',
    REPLICA_LEASE_MILLIS: '60000',
  });
  log = recordLog();
  const rules = withoutRules(settings);
  ({ limiter } = await createLimiter(settings, rules, 'replica', log.logger, unobserved));
  key = uniqueKey();
  state = `sluice:{${key}}`;
  await limiter.check({ key, canWait: false });
});

afterEach(() => limiter.close());

const CALLS: readonly [call: string, send: () => Promise<unknown>][] = [
  ['a plain check', () => limiter.check({ key, canWait: false })],
  ['a check that can wait', () => limiter.check({ key, canWait: true })],
  ['a check with hits', () => limiter.check({ key, canWait: false, hits: 2 })],
  ['a release', () => limiter.ask('release', { key, requestId: ID })],
  ['a pause', () => limiter.ask('pause', { key, millis: 1000 })],
  ['a peek', () => limiter.ask('peek', { key })],
  ['a status', () => limiter.ask('statusOf', { key, requestId: ID })],
  ['an inspection', () => limiter.ask('inspect', { key })],
  ['a look at all of it', () => limiter.ask('examine', { key, mostQueued: 10 })],
  ['a look at its holds', () => limiter.ask('holdings', { key })],
];

describe('a key that another version has stored in another form', () => {
  test.each([
    ['1', '1 '],
    ['0', ''],
  ])(
    'fails all calls with an error that says so, and stays as it is: form %s',
    async (form, said) => {
      const limits = (await redis.client.hget(state, 'limits'))!;
      await redis.client.hset(state, 'limits', limits.replace('2 ', said));
      const before = await contentsOfKey(redis.client, state);
      const message = `Redis holds form ${form} of the state, this version reads form 2`;
      for (const [call, send] of CALLS) {
        const error: unknown = await send().catch((failure: unknown) => failure);
        expect([call, error]).toEqual([call, expect.any(StoreUnavailableError)]);
        expect(error).toMatchObject({ mayHaveRun: false });
        expect(((error as Error).cause as Error).message).toContain(message);
      }
      expect(await contentsOfKey(redis.client, state)).toEqual(before);
      expect(log.lines).toContainEqual(
        expect.objectContaining({
          msg: 'store call failed',
          failures: { check: 1 },
          reason: message,
        }),
      );
      // Other keys are decided.
      expect(await limiter.check({ key: uniqueKey(), canWait: false })).toMatchObject({
        outcome: 'approved',
      });
    },
  );
});
