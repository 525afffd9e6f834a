import { startTestApp, type TestApp } from './app.js';
import { type Answer, ratePath, send } from './http-client.js';
import { uniqueKey } from './unique-key.js';
import { until } from './until.js';

/** The log's messages for each change of the store's state, and of what decides. */
export const STORE_DOWN = 'store is down; not asked until it is up again';
export const STORE_BACK = 'store is up again';
export const POLICY_DECIDES = 'the outage policy decides';
export const STORE_DECIDES = 'the store decides again';
/** So long that a busy machine does not look like an outage. */
const STORE_TIMEOUT_MILLIS = 1000;
/** As many calls as must fail before the store counts as down. */
const CALLS_AT_ONCE = 3;
const CHANGES: readonly unknown[] = [STORE_DOWN, STORE_BACK, POLICY_DECIDES, STORE_DECIDES];

/** A service that decides by `policy` while its Redis is down. */
export function startWithPolicy(
  redis: { readonly url: string },
  policy: string,
  timeoutMillis = STORE_TIMEOUT_MILLIS,
): Promise<TestApp> {
  return startTestApp({
    REDIS_URL: redis.url,
    STORE_OUTAGE_POLICY: policy,
    STORE_TIMEOUT_MILLIS: String(timeoutMillis),
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
  });
}

/** The changes of state in the log so far, in order. */
export function changesIn(app: TestApp): unknown[] {
  return app.log.map(({ msg }) => msg).filter((msg) => CHANGES.includes(msg));
}

/** The policy that has decided instead of the store. */
export function policyOf(answer: Answer): string | string[] | undefined {
  return answer.headers['x-sluice-outage-policy'];
}

/** Sends checks of other keys until the log has this line `times` times. */
export async function checkUntilLogged(app: TestApp, msg: string, times = 1): Promise<void> {
  await until(async () => {
    const checks: Promise<Answer>[] = [];
    for (let i = 0; i < CALLS_AT_ONCE; i += 1) {
      checks.push(send(app.url, 'POST', ratePath(uniqueKey())));
      // When this is answered, the check has been read, so the next check goes to the store in a call of its own.
      await send(app.url, 'GET', '/healthz');
    }
    await Promise.all(checks);
    return changesIn(app).filter((line) => line === msg).length >= times;
  });
}
