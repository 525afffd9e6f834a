import { parseSettings } from '../../../../src/config/settings.js';
import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import type { CheckRequest, Decision } from '../../../../src/limiter/limiter.js';
import { withoutRules } from '../../../../src/rules/rules.js';
import { openAccess } from '../../../../src/service/callers/access.js';
import { checkDecider, type Decided } from '../../../../src/service/deciding/decide-check.js';
import { RecentDenials } from '../../../../src/service/deciding/recent-denials.js';
import type { ConnectedRequest } from '../../../../src/service/request-context.js';
import { quotaOf } from '../../../support/quota.js';

const CHECK: CheckRequest = { key: 'a', canWait: false };
const QUOTA = quotaOf(1);
const CONTEXT: ConnectedRequest = {
  correlationId: 'id',
  owner: 'the caller',
  startedAt: 0,
  headers: {},
  caller: {
    name: 'the caller',
    scopes: ['check'],
    waitingShare: undefined,
    mayUse: () => true,
    mayUseAll: true,
  },
  whilePresent: () => Promise.reject(new Error('waits')),
};

/** Decides the check with a limiter that gives this answer. */
function decideBy(answer: () => Promise<Decision>) {
  const settings = parseSettings({});
  const rules = withoutRules(settings);
  const recentDenials = new RecentDenials();
  const counted: Decision[] = [];
  const undecided: string[] = [];
  const decide = checkDecider({
    limiter: { check: answer, reportRemaining: () => Promise.reject(new Error('no report')) },
    policyOf: (key) => rules.current.policyOf(key),
    metrics: { decided: (decision) => counted.push(decision) },
    undecided: { record: (reason) => undecided.push(reason) },
    recentDenials,
    watchedKeys: { record: () => undefined },
    access: openAccess(),
    settings,
  });
  const decided = new Promise<Decided>((resolve, reject) => {
    decide(CHECK, CONTEXT, resolve, reject);
  });
  return { decided, recentDenials, counted, undecided };
}

test.each<Decision>([{ outcome: 'approved', requestId: 'id' }, { outcome: 'withdrawn' }])(
  '%j is returned with the policy of its key and counted, and is not a recent denial',
  async (decision) => {
    const { decided, recentDenials, counted } = decideBy(() => Promise.resolve(decision));

    expect(await decided).toMatchObject({ decision, policy: { isShadow: false } });
    expect(counted).toEqual([decision]);
    expect(recentDenials.all()).toEqual([]);
  },
);

test('a denial is returned and counted, and is a recent denial of its caller', async () => {
  const denial: Decision = { outcome: 'denied', reason: 'queue_full', quota: QUOTA };
  const { decided, recentDenials, counted } = decideBy(() => Promise.resolve(denial));

  expect(await decided).toMatchObject({ decision: denial });
  expect(counted).toEqual([denial]);
  expect(recentDenials.all()).toMatchObject([
    { key: 'a', lastReason: 'queue_full', caller: 'the caller' },
  ]);
});

test('a check that is not decided fails with its error, and is counted by its reason', async () => {
  const error = new StoreUnavailableError();
  const { decided, recentDenials, counted, undecided } = decideBy(() => Promise.reject(error));

  await expect(decided).rejects.toBe(error);
  expect(undecided).toEqual(['store_unavailable']);
  expect([counted, recentDenials.all()]).toEqual([[], []]);
});
