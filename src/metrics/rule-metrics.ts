import { Gauge, type Registry } from 'prom-client';

import type { Rules } from '../rules/rules.js';
import { flag } from './flag.js';

export type RulesInForce = Pick<Rules, 'current' | 'isStale'>;

/** Metrics of the rules in force: replicas with other rules have another digest. */
export function ruleMetrics(registry: Registry, rules: RulesInForce): void {
  new Gauge({
    name: 'ratelimit_rules',
    help: 'Number of rules in force, with their digest.',
    labelNames: ['digest'],
    registers: [registry],
    collect() {
      this.reset();
      this.set({ digest: rules.current.digest }, rules.current.rules.length);
    },
  });
  flag(
    registry,
    'ratelimit_rules_stale',
    '1 while the rules file is invalid and the last valid rules are in force.',
    () => rules.isStale,
  );
}
