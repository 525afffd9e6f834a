import { parseSettings } from '../../src/config/settings.js';
import type { CallerPresence } from '../../src/limiter/request.js';
import type {
  Answer,
  Asked,
  CheckRequest,
  Decision,
  OperationName,
  PeekRequest,
} from '../../src/limiter/limiter.js';
import { MemoryLimiter } from '../../src/limiter/memory/memory-limiter.js';
import { parseRules } from '../../src/rules/parse-rules.js';
import type { KeyPolicy } from '../../src/rules/policy.js';
import { RuleSet } from '../../src/rules/rule-set.js';
import { defaultPolicy } from '../../src/rules/rules.js';
import { ManualClock } from './manual-clock.js';

/** The embedded limiter, which notes what it is asked. */
export class RecordingLimiter extends MemoryLimiter<KeyPolicy> {
  readonly asked: (CheckRequest | PeekRequest)[] = [];

  /** @param rules as in a rules file */
  constructor(...rules: readonly object[]) {
    const keys = parseRules(JSON.stringify({ keys: rules }));
    const current = new RuleSet(keys, defaultPolicy(parseSettings({})));
    super({ current }, new ManualClock(1_700_000_000_000));
  }

  override check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    this.asked.push(request);
    return super.check(request, caller);
  }

  override ask<Name extends OperationName>(
    operation: Name,
    asked: Asked<Name>,
  ): Promise<Answer<Name>> {
    if (operation === 'peek') this.asked.push(asked);
    return super.ask(operation, asked);
  }
}
