import { randomUUID } from 'node:crypto';

import type { TestApp } from '../../support/app.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import {
  type Answer,
  approve,
  approvedId,
  begin,
  type PendingRequest,
  ratePath,
  send,
} from '../../support/http-client.js';
import {
  checkUntilLogged,
  policyOf,
  startWithPolicy,
  STORE_BACK,
  STORE_DOWN,
} from '../../support/outage.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

type Policy = 'deny' | 'allow' | 'local';

let redis: RedisProcess;
let app: TestApp;

async function start(policy: Policy): Promise<void> {
  redis = await startRedisProcess();
  app = await startWithPolicy(redis, policy);
}

async function stop(): Promise<void> {
  await app.stop(0);
  await redis.stop();
}

async function goDown(): Promise<void> {
  await redis.kill();
  await checkUntilLogged(app, STORE_DOWN);
}

const check = (key: string, query = ''): Promise<Answer> =>
  send(app.url, 'POST', `${ratePath(key)}${query}`);

describeWithRedisProgram('while Redis is down', () => {
  describe.each<[policy: 'allow' | 'local']>([['allow'], ['local']])(
    'under the policy %s',
    (policy) => {
      beforeAll(async () => {
        await start(policy);
        expect(policyOf(await check(uniqueKey()))).toBeUndefined();
        await goDown();
      });
      afterAll(stop);

      test('an answer that the policy does not decide does not name it', async () => {
        const answers = [
          [200, await send(app.url, 'GET', '/healthz')],
          [503, await send(app.url, 'GET', '/readyz')],
          [400, await check(uniqueKey(), '?canWait=x')],
          [405, await send(app.url, 'HEAD', ratePath(uniqueKey()))],
          [404, await send(app.url, 'GET', '/unknown')],
          [503, await send(app.url, 'DELETE', `${ratePath(uniqueKey())}/${randomUUID()}`)],
        ] as const;

        for (const [status, answer] of answers) {
          expect([answer.status, policyOf(answer)]).toEqual([status, undefined]);
        }
      });
    },
  );
});

describeWithRedisProgram('waiters when Redis goes down', () => {
  let key: string;
  let waiting: PendingRequest[];
  /** The waiters that have been answered so far, in the order of their answers. */
  let answered: number[];
  afterEach(async () => {
    for (const request of waiting) request.disconnect();
    await stop();
  });

  async function startWaiting(policy: Policy): Promise<void> {
    await start(policy);
    key = uniqueKey();
    await approve(app.url, key);
    waiting = [];
    answered = [];
    for (let i = 0; i < 4; i += 1) {
      const request = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
      request.answer.then(
        () => answered.push(i),
        () => undefined,
      );
      waiting.push(request);
      await untilWaiting(app.url, key, i + 1);
    }
  }

  test('are served in their order by the limits of this replica under the policy local', async () => {
    await startWaiting('local');
    await goDown();

    for (const [i, { answer }] of waiting.entries()) {
      const approval = await answer;
      expect([approval.status, policyOf(approval)]).toEqual([200, 'local']);
      expect(answered).toEqual([0, 1, 2, 3].slice(0, i + 1));
      expect(await debugState(app.url, key)).toMatchObject({
        NumApprovedThisWindow: 1,
        NumWaiting: 3 - i,
      });
      await send(app.url, 'DELETE', `${ratePath(key)}/${approvedId(approval)}`);
    }
  });

  test('wait on under the policy deny, and are served in their order when Redis is back, although empty', async () => {
    await startWaiting('deny');
    await goDown();
    expect((await check(key, '?canWait=true')).status).toBe(503);
    await redis.restart({ withData: false });
    await app.logged(({ msg }) => msg === STORE_BACK);
    await untilWaiting(app.url, key, 4);
    expect(answered).toEqual([]);

    for (const [i, { answer }] of waiting.entries()) {
      // Makes room for one more, and the head of the queue gets it before the check itself.
      expect((await check(key, `?maxRequests=${i + 2}`)).status).toBe(429);
      const approval = await answer;
      expect([approval.status, policyOf(approval)]).toEqual([200, undefined]);
      expect(answered).toEqual([0, 1, 2, 3].slice(0, i + 1));
      await until(async () => (await debugState(app.url, key)).NumWaiting === 3 - i);
    }
  });
});
