import type { CallerPresence } from '../../src/limiter/request.js';
import { StoreUnavailableError, UnavailableError } from '../../src/limiter/errors.js';
import type {
  Answer,
  Asked,
  CheckRequest,
  Decision,
  Holding,
  InstanceState,
  OperationFunctions,
  OperationName,
  StoreCondition,
  StoreLimiter,
} from '../../src/limiter/limiter.js';
import { ownLimit } from '../../src/limiter/limits.js';
import { Waiter } from '../../src/limiter/waiter.js';

/** A check that the stub was asked for, and that the test decides. */
export interface AskedCheck {
  readonly request: CheckRequest;
  readonly waiter: Waiter;
}

/** A limiter whose decisions and outages, by key, are under the test's control. */
export class StoreLimiterStub implements StoreLimiter {
  readonly asked: AskedCheck[] = [];
  /** The ids of withdrawn requests. */
  readonly withdrawn: string[] = [];
  readonly released: string[] = [];
  readonly #down = new Set<string>();
  readonly #listeners: (() => void)[] = [];
  isClosed = false;
  isHandedOver = false;
  /** How often it was told that limits may have changed. */
  limitChanges = 0;
  pages: () => AsyncIterable<readonly InstanceState[]> = () => this.#noPages();

  /** What it answers, unless the key is down. A test may set others. */
  readonly operations: { -readonly [Name in OperationName]: OperationFunctions[Name] } = {
    release: ({ key, requestId }) => {
      this.released.push(requestId);
      return this.#answer(key, requestId.startsWith('id '));
    },
    giveBack: ({ claim }) => {
      this.released.push(claim);
      return Promise.resolve(true);
    },
    amend: ({ key, requestId }) => this.#answer(key, requestId.startsWith('id ') ? {} : undefined),
    statusOf: ({ key, requestId }) =>
      this.#answer(key, requestId.startsWith('id ') ? { status: 'approved' } : undefined),
    endHold: ({ key, handle }) => this.#answer(key, handle === HOLDING.handle),
    refund: ({ key }) => this.#answer(key, 0),
    reportRemaining: ({ key }) => this.#answer(key, { remaining: 0 }),
    pause: ({ key }) => this.#answer(key, 0),
    peek: ({ key }) => this.#answer(key, { outcome: 'approved' }),
    inspect: ({ key }) => this.#answer(key, instance(key)),
    examine: ({ key }) => this.#answer(key, { ...instance(key), ...NOTHING_MORE }),
    holdings: ({ key }) => this.#answer(key, [HOLDING]),
  };

  waiting(key?: string): number {
    return this.asked.filter(
      ({ request, waiter }) => (key === undefined || request.key === key) && !waiter.decided,
    ).length;
  }

  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    if (!this.isAvailable(request.key)) return Promise.reject(new StoreUnavailableError());
    const waiter = new Waiter(`id ${this.asked.length}`);
    waiter.withdrawOnDisconnect(caller, () => this.withdrawn.push(waiter.requestId));
    this.asked.push({ request, waiter });
    return waiter.decision;
  }

  ask<Name extends OperationName>(operation: Name, asked: Asked<Name>): Promise<Answer<Name>> {
    return this.operations[operation](asked);
  }

  list(): AsyncIterable<readonly InstanceState[]> {
    return this.pages();
  }

  ping(): Promise<StoreCondition> {
    return Promise.reject(new Error('pinged'));
  }

  limitsChanged(): void {
    this.limitChanges += 1;
  }

  isAvailable(key: string): boolean {
    return !this.#down.has(key);
  }

  onAvailabilityChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  handOver(): void {
    this.isHandedOver = true;
  }

  close(): Promise<void> {
    this.isClosed = true;
    for (const { waiter } of this.asked) waiter.fail(new UnavailableError('shutting_down'));
    return Promise.resolve();
  }

  /** The store is down for these keys from now on, and the limiter announces it. */
  goDown(...keys: string[]): void {
    for (const key of keys) this.#down.add(key);
    for (const listener of this.#listeners) listener();
  }

  comeBack(): void {
    this.#down.clear();
    for (const listener of this.#listeners) listener();
  }

  #answer<T>(key: string, answer: T): Promise<T> {
    if (this.isAvailable(key)) return Promise.resolve(answer);
    return Promise.reject(new StoreUnavailableError());
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- the interface is async
  async *#noPages(): AsyncIterable<readonly InstanceState[]> {
    yield [];
  }
}

const NOTHING_MORE = {
  overridden: { maxRequests: false, maxRequestsInQueue: false, windowMillis: false },
  isRecovering: false,
  queue: [],
  replicas: [],
  names: [],
};

/** What is held of each key in the stub's store. */
export const HOLDING: Holding = {
  handle: 'f00d',
  holder: 'host:1',
  heldMillis: 5,
  lapseMillis: 95,
  hits: 1,
};

/** A key's state in the stub's store. */
export function instance(key: string): InstanceState {
  return {
    key,
    limits: [{ ...ownLimit(1, 1), used: 77, millisToWindowEnd: 1 }],
    maxRequestsInQueue: 1,
    held: 0,
    denied: 0,
    waiting: 0,
    pausedMillis: 0,
  };
}
