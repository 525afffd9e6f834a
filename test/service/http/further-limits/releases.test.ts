import { type AppByRules, useAppsByRules } from '../../../support/app-by-rules.js';
import { releaseMany } from '../../../support/bulk-client.js';
import { debugState, untilWaiting } from '../../../support/debug-state.js';
import { approve, begin, ratePath, send } from '../../../support/http-client.js';

const serve = useAppsByRules();

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const RULE = { key_pattern: 'key', max_requests_per_window: 10, window_millis: MINUTE };
const HOURLY = { name: 'hour', max_hits_per_window: 4, window_millis: HOUR };
const STARTS = { ...HOURLY, name: 'starts', releases_return: false };

const release = async ({ url }: AppByRules, id: string): Promise<number> =>
  (await send(url, 'DELETE', `${ratePath('key')}/${id}`)).status;

const approvedOf = async ({ url }: AppByRules): Promise<unknown[]> => {
  const { NumApprovedThisWindow, Limits = [] } = await debugState(url, 'key');
  return [NumApprovedThisWindow, ...Limits.map((limit) => limit.NumApprovedThisWindow)];
};

describe('an approval whose own window has ended', () => {
  test('is released as long as a further limit counts it, which gives its hits back', async () => {
    const app = await serve([{ ...RULE, limits: [HOURLY] }]);
    const id = await approve(app.url, 'key', '?hits=3');
    await app.clock.advance(2 * MINUTE);
    expect(await approvedOf(app)).toEqual([0, 3]);
    expect(await release(app, id)).toBe(200);
    expect(await approvedOf(app)).toEqual([0, 0]);
    expect(await release(app, id)).toBe(404);
  });

  test('serves a waiter with its release, also by a bulk request', async () => {
    const app = await serve([{ ...RULE, limits: [HOURLY] }]);
    const id = await approve(app.url, 'key', '?hits=4');
    const waiting = begin(app.url, 'POST', `${ratePath('key')}?canWait=true&hits=2`);
    await untilWaiting(app.url, 'key', 1);
    await app.clock.advance(MINUTE);
    await untilWaiting(app.url, 'key', 1);
    expect(await releaseMany(app.url, [{ key: 'key', request_id: id }])).toEqual([{ status: 200 }]);
    expect((await waiting.answer).status).toBe(200);
    expect(await approvedOf(app)).toEqual([2, 2]);
  });

  test('can be corrected as long as a further limit counts it', async () => {
    const app = await serve([{ ...RULE, limits: [HOURLY] }]);
    const id = await approve(app.url, 'key', '?hits=4');
    await app.clock.advance(MINUTE);
    const { status } = await send(app.url, 'PUT', `${ratePath('key')}/${id}?hits=1`);
    expect([status, await approvedOf(app)]).toEqual([200, [0, 1]]);
  });

  test('is not found once the windows of all limits have ended', async () => {
    const app = await serve([{ ...RULE, limits: [HOURLY] }]);
    const id = await approve(app.url, 'key');
    await app.clock.advance(HOUR);
    expect(await release(app, id)).toBe(404);
  });

  test('is not found if only a limit counts it to which releases return nothing', async () => {
    const app = await serve([{ ...RULE, limits: [STARTS] }]);
    const id = await approve(app.url, 'key');
    await app.clock.advance(MINUTE);
    expect(await release(app, id)).toBe(404);
    expect(await approvedOf(app)).toEqual([0, 1]);
  });
});

test('a release returns nothing to a limit that keeps what is released, and all to the others', async () => {
  const app = await serve([{ ...RULE, limits: [STARTS, HOURLY] }]);
  expect(await release(app, await approve(app.url, 'key', '?hits=3'))).toBe(200);
  expect(await approvedOf(app)).toEqual([0, 3, 0]);
});

test('a held approval counts on in the further limits, but not as a start of a later window', async () => {
  const starts = { ...STARTS, window_millis: 2 * MINUTE };
  const app = await serve([{ ...RULE, limits: [starts, HOURLY] }]);
  const id = await approve(app.url, 'key', `?holdMillis=${10 * HOUR}&hits=2`);
  await app.clock.advance(2 * HOUR);
  expect(await approvedOf(app)).toEqual([2, 0, 2]);
  expect(await release(app, id)).toBe(200);
  // No window of the key is current, and nothing is held.
  expect(await debugState(app.url, 'key')).toEqual({ Key: 'key', Found: false });
});
