import { CallerPresence } from '../../../../src/limiter/caller-presence.js';
import type { CheckRequest } from '../../../../src/limiter/limiter.js';
import { MemoryLimiter } from '../../../../src/limiter/memory/memory-limiter.js';
import {
  allowAll,
  decideLocally,
  type Substitute,
} from '../../../../src/limiter/outage/substitute.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { policiesWith } from '../../../support/policies.js';
import { requestIdOf } from '../../../support/request-id-of.js';
import { quotaOf } from '../../../support/quota.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const check: CheckRequest = { key: 'key', canWait: false };
const waitingCheck: CheckRequest = { key: 'key', canWait: true };

describe('the substitute that allows all', () => {
  test('approves every check, each with its own request id', async () => {
    const requests = [check, waitingCheck, { ...check, maxRequests: 1, maxRequestsInQueue: 0 }];
    const decisions = await Promise.all([...requests, ...requests].map((it) => allowAll.check(it)));
    const ids = new Set<string>();
    for (const decision of decisions) {
      expect(decision).toEqual({
        outcome: 'approved',
        requestId: expect.stringMatching(UUID) as string,
        outagePolicy: 'allow',
      });
      if (decision.outcome === 'approved') ids.add(decision.requestId);
    }
    expect(ids.size).toBe(decisions.length);
  });

  test('has no waiters, remembers nothing and knows no keys', async () => {
    await allowAll.check(waitingCheck);
    const decision = await allowAll.check(check);
    const requestId = decision.outcome === 'approved' ? decision.requestId : '';
    expect(await allowAll.release('key', requestId)).toBe(false);
    expect([allowAll.waiting, allowAll.limiter]).toEqual([0, undefined]);
  });
});

describe('the substitute that decides locally', () => {
  let clock: ManualClock;
  let limiter: MemoryLimiter;
  let local: Substitute;
  beforeEach(() => {
    clock = new ManualClock(0);
    const limits = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 1 };
    limiter = new MemoryLimiter(
      policiesWith(() => limits),
      clock,
    );
    local = decideLocally(limiter);
  });
  afterEach(() => local.close());

  async function approve(): Promise<string> {
    return requestIdOf(await local.check(check));
  }

  test('decides with a limiter, and every decision names the policy', async () => {
    expect(await local.check(check)).toMatchObject({ outcome: 'approved', outagePolicy: 'local' });
    const waiting = local.check(waitingCheck);
    expect(await local.check(check)).toEqual({
      outcome: 'denied',
      reason: 'limit_reached',
      quota: quotaOf(1000),
      outagePolicy: 'local',
    });
    expect(await local.check(waitingCheck)).toMatchObject({ reason: 'queue_full' });
    expect([local.waiting, limiter.waiting, local.limiter]).toEqual([1, 1, limiter]);
    await clock.advance(1000);
    expect(await waiting).toMatchObject({
      outcome: 'approved',
      waited: true,
      outagePolicy: 'local',
    });
    expect(local.waiting).toBe(0);
  });

  test('withdraws a waiter if its client disconnects', async () => {
    await approve();
    const caller = new CallerPresence();
    const waiting = local.check(waitingCheck, caller);
    caller.disconnect();
    expect(await waiting).toEqual({ outcome: 'withdrawn' });
  });

  test('releases an approval once', async () => {
    const requestId = await approve();
    expect(await local.release('key', requestId)).toBe(true);
    expect(await local.release('key', requestId)).toBe(false);
    await approve();
  });

  test('fails its waiters when it is closed', async () => {
    await approve();
    const waiting = local.check(waitingCheck);
    const turnedAway = expect(waiting).rejects.toMatchObject({ reason: 'shutting_down' });
    await local.close();
    await turnedAway;
  });
});
