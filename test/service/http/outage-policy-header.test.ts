import type { Decision, Limiter } from '../../../src/limiter/limiter.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import { type Answer, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { quotaOf } from '../../support/quota.js';

const APPROVED: Decision = {
  outcome: 'approved',
  requestId: 'a4e5d9b1-206d-4df5-bff1-7f4662b31529',
};
const DENIED: Decision = { outcome: 'denied', reason: 'limit_reached', quota: quotaOf(1) };

async function answerTo(
  decision: Decision,
): Promise<{ answer: Answer; decidedBy: string | undefined }> {
  const limiter = { waiting: 0, check: () => Promise.resolve(decision) } as Partial<Limiter>;
  const app = await serve(httpAppOver(limiter as Limiter));
  const answer = await send(app.url, 'POST', '/rate/key');
  const metrics = await scrape(app.url);
  await app.close();
  const decided = metrics.series.find(
    ({ name, value }) => name === 'ratelimit_decisions_total' && value === 1,
  );
  return { answer, decidedBy: decided?.labels.decided_by };
}

test.each<[status: number, policy: 'allow' | 'local', decision: Decision]>([
  [200, 'allow', { ...APPROVED, outagePolicy: 'allow' }],
  [200, 'local', { ...APPROVED, outagePolicy: 'local' }],
  [429, 'local', { ...DENIED, outagePolicy: 'local' }],
])('a %d under the policy %s says so, and is counted as such', async (status, policy, decision) => {
  const { answer, decidedBy } = await answerTo(decision);

  expect(answer.status).toBe(status);
  expect(answer.headers['x-sluice-outage-policy']).toBe(policy);
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.headers['retry-after']).toBe(status === 429 ? '1' : undefined);
  expect(decidedBy).toBe(policy);
});

test.each([
  [200, APPROVED],
  [429, DENIED],
])('a %d of the store names no policy', async (status, decision) => {
  const { answer, decidedBy } = await answerTo(decision);

  expect(answer.status).toBe(status);
  expect(answer.headers).not.toHaveProperty(['x-sluice-outage-policy']);
  expect(decidedBy).toBe('store');
});
