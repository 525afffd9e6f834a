import { setImmediate as nextTick } from 'node:timers/promises';

import fc from 'fast-check';

import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { extent } from '../../support/extent.js';
import { type GrpcApp, ruleForAll, useGrpcApps } from '../../support/grpc-app.js';
import { type Gateway, of, useGateways } from '../../support/grpc-gateway.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const MAX = 5;
/** Checks of the first two may wait. */
const NAMES = ['patient-a', 'patient-b', 'hasty-a', 'hasty-b'] as const;

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();

type Descriptors = readonly { readonly name: string; readonly hits: number }[];

/** Asks, lets some ticks pass, or cancels a call: 0 is the last one, 1 the one before. */
type Step =
  { readonly ask: Descriptors } | { readonly ticks: number } | { readonly cancel: number };

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        ask: fc.array(
          fc.record({
            name: fc.constantFrom(...NAMES),
            hits: fc.constantFrom(1, 1, 1, 2, 3, MAX + 1),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      }),
    },
    { weight: 2, arbitrary: fc.record({ ticks: fc.nat(6) }) },
    { weight: 3, arbitrary: fc.record({ cancel: fc.nat(3) }) },
  ),
  { minLength: 5, maxLength: 40 },
);

describe.each(bothLimiters(redis))(
  'under random calls and cancellations (%s limiter)',
  (_name, settings) => {
    let app: GrpcApp;
    let gateway: Gateway;
    beforeEach(async () => {
      app = await start(
        { ...settings(), LOG_2XX: 'true' },
        {
          rules: [
            ruleForAll({ max_requests_per_window: MAX }),
            {
              key_pattern: '.*/patient-.*',
              key_pattern_is_regex: true,
              max_wait_millis: 86_400_000,
            },
          ],
        },
      );
      gateway = gatewayOf(app);
    });

    test('the approvals of each key match the calls that were answered OK', async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          await expectExact(app, gateway, all);
        }),
        { numRuns: extent(60, 300) },
      );
    });
  },
);

async function expectExact(app: GrpcApp, gateway: Gateway, all: readonly Step[]): Promise<void> {
  const run = uniqueKey();
  const keyOf = (name: string): string => `${run}/${name}`;
  const asked = new Map<string, Descriptors>();
  const calls: ReturnType<Gateway['begin']>[] = [];
  const approvedByAnswer = new Set<string>();

  const ask = (descriptors: Descriptors): void => {
    const id = uniqueKey();
    asked.set(id, descriptors);
    const call = gateway.begin(
      {
        descriptors: descriptors.map(({ name, hits }) =>
          of(keyOf(name), { hits_addend: { value: hits } }),
        ),
      },
      { headers: { 'x-correlation-id': id } },
    );
    call.answer.then(
      ({ overall_code }) => overall_code === 'OK' && approvedByAnswer.add(id),
      () => undefined,
    );
    calls.push(call);
  };

  for (const step of all) {
    if ('ask' in step) ask(step.ask);
    else if ('cancel' in step) calls.at(-1 - step.cancel)?.cancel();
    else for (let tick = 0; tick < step.ticks; tick += 1) await nextTick();
  }
  // Calls that still wait are cancelled. A later answer on the same connection shows that the service has read it all.
  await gateway.askFor(uniqueKey());
  for (const call of calls) call.cancel();
  await Promise.allSettled(calls.map(({ answer }) => answer));
  await gateway.askFor(uniqueKey());

  /** Counted from the log: the service may have answered a call before it read the cancellation. */
  const account = (): Record<string, number> => {
    const counts = Object.fromEntries(NAMES.map((name) => [name, 0]));
    for (const { msg, status, correlationId } of app.log) {
      if (msg !== 'call answered' || status !== 200) continue;
      for (const { name, hits } of asked.get(String(correlationId)) ?? []) counts[name]! += hits;
    }
    return counts;
  };
  const stored = async (): Promise<Record<string, number>> => {
    const states = await Promise.all(NAMES.map((name) => debugState(app.url, keyOf(name))));
    expect(states.map(({ NumWaiting = 0 }) => NumWaiting)).toEqual(NAMES.map(() => 0));
    return Object.fromEntries(
      NAMES.map((name, i) => [name, states[i]!.NumApprovedThisWindow ?? 0]),
    );
  };
  await until(async () => {
    try {
      expect(await stored()).toEqual(account());
      return true;
    } catch {
      return false;
    }
  }, 2000).catch(() => undefined);

  expect(await stored()).toEqual(account());
  for (const count of Object.values(account())) expect(count).toBeLessThanOrEqual(MAX);
  const loggedAsApproved = app.log
    .filter(({ status }) => status === 200)
    .map(({ correlationId }) => correlationId);
  for (const id of approvedByAnswer) expect(loggedAsApproved).toContain(id);
}
