import { parseSettings } from '../../src/config/settings.js';
import { loadCalendars } from '../../src/limiter/calendar/time-zones.js';
import { MemoryLimiter } from '../../src/limiter/memory/memory-limiter.js';
import { parseRules } from '../../src/rules/parse-rules.js';
import type { KeyPolicy } from '../../src/rules/policy.js';
import { RuleSet } from '../../src/rules/rule-set.js';
import { defaultPolicy } from '../../src/rules/rules.js';
import type { Environment } from './both-limiters.js';
import { httpAppOver, serve } from './http-app.js';
import { ManualClock } from './manual-clock.js';

/** The HTTP surface over the embedded limiter, on a clock that the test moves. */
export interface AppByRules {
  readonly url: string;
  readonly clock: ManualClock;
  /** Other rules are in force from now on. The limiter is not told. */
  change(...rules: readonly object[]): void;
  close(): Promise<void>;
}

/** @param rules as in a rules file @param environment settings as environment variables */
export async function serveByRules(
  rules: readonly object[],
  environment: Environment = {},
): Promise<AppByRules> {
  const settings = parseSettings(environment);
  const calendars = await loadCalendars();
  const ruleSetOf = (keys: readonly object[]): RuleSet =>
    new RuleSet(parseRules(JSON.stringify({ keys })), defaultPolicy(settings), calendars);
  const policies = { current: ruleSetOf(rules) };
  const clock = new ManualClock(1_700_000_000_000);
  const limiter = new MemoryLimiter<KeyPolicy>(policies, clock);
  const policyOf = (key: string): KeyPolicy => policies.current.policyOf(key);
  const served = await serve(httpAppOver(limiter, { policyOf, settings }));
  return {
    url: served.url,
    clock,
    change: (...keys) => {
      policies.current = ruleSetOf(keys);
    },
    close: async () => {
      await limiter.close();
      await served.close();
    },
  };
}

/** Such services of one file's tests. Each ends with its test. */
export function useAppsByRules(): typeof serveByRules {
  const apps: AppByRules[] = [];
  afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));
  return async (...args) => {
    const app = await serveByRules(...args);
    apps.push(app);
    return app;
  };
}
