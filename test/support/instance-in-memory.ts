import type { CheckRequest, KeyLimits, Peek } from '../../src/limiter/limiter.js';
import { Instance } from '../../src/limiter/memory/instance.js';
import type {
  InstanceDecision,
  RecordDecision,
} from '../../src/limiter/memory/instance-decision.js';
import { MemoryBudget } from '../../src/limiter/memory/memory-budget.js';
import type { QueueList } from '../../src/limiter/queue-order.js';
import { type DeclaredLimits, keyLimits } from './limits.js';

const UUID_START = '0197c3a2-8b1e-4f00-8d5a-';
const NAME_DIGITS = 12;

export const lane = (name: string, headStartMillis = 0): QueueList => ({
  kind: 'lane',
  name,
  headStartMillis,
});

export const group = (name: string, weight = 1, maxRequests?: number): QueueList => ({
  kind: 'group',
  name,
  weight,
  maxRequests,
});

type Terms = Partial<CheckRequest>;

/** A key of the embedded limiter. A test sets its time, and names its requests with up to six characters. */
export class InstanceInMemory {
  /** In milliseconds. */
  now = 0;
  readonly instance: Instance;
  /** The names of the requests that were approved from the queue, in order. */
  readonly granted: string[] = [];
  readonly #policy: { current: KeyLimits };
  #numbers = 0;

  constructor(
    limits: DeclaredLimits,
    bounds: { maxIdsPerKey?: number; maxHoldsPerKey?: number } = {},
  ) {
    this.#policy = { current: keyLimits(limits) };
    const all = {
      maxIdsPerKey: Infinity,
      maxHoldsPerKey: Infinity,
      maxGroupsPerKey: Infinity,
      ...bounds,
    };
    const budget = new MemoryBudget(Infinity);
    this.instance = new Instance('k', 0, this.#policy, all, budget, (ids) => {
      this.granted.push(...ids.map(nameOf));
    });
  }

  set limits(limits: DeclaredLimits) {
    this.#policy.current = keyLimits(limits);
  }

  /** A check that does not wait. */
  check(name: string, list?: QueueList, terms: Terms = {}): InstanceDecision | RecordDecision {
    return this.instance.check(this.now, idOf(name), { key: 'k', canWait: false, list, ...terms });
  }

  /** A check that waits if it has to. */
  wait(name: string, list?: QueueList, terms: Terms = {}): InstanceDecision | RecordDecision {
    return this.check(name, list, { canWait: true, ...terms });
  }

  /** A check that waits if it has to, and whose caller has chosen the request id. */
  checkKnown(name: string, list?: QueueList, terms: Terms = {}): InstanceDecision | RecordDecision {
    this.#numbers += 1;
    const request = { key: 'k', canWait: true, list, ...terms };
    return this.instance.check(this.now, idOf(name), request, this.#numbers);
  }

  peek(list?: QueueList, terms: Terms = {}): Peek {
    return this.instance.peek(this.now, { ...terms, list });
  }

  withdraw(name: string): void {
    this.instance.withdraw(this.now, idOf(name));
  }

  release(name: string): boolean {
    return this.instance.release(this.now, idOf(name));
  }

  /** Goes on to a time, and serves those who wait. Returns who was approved. */
  settleAt(now: number): string[] {
    this.now = now;
    this.granted.length = 0;
    this.instance.settle(now);
    return [...this.granted];
  }

  /** The requests that are approved in windows of this length from now on, in their order, until one approves nobody. */
  servedInWindowsOf(millis: number): string[] {
    const served: string[] = [];
    for (;;) {
      const granted = this.settleAt(this.now + millis);
      if (granted.length === 0) return served;
      served.push(...granted);
    }
  }

  /** What counts of each limit. */
  get used(): number[] {
    return this.instance.inspect(this.now).limits.map(({ used }) => used);
  }
}

/** The request id of a name. */
export function idOf(name: string): string {
  return UUID_START + Buffer.from(name).toString('hex').padStart(NAME_DIGITS, '0');
}

function nameOf(id: string): string {
  const digits = id.slice(UUID_START.length).replace(/^(00)*/, '');
  return Buffer.from(digits, 'hex').toString();
}
