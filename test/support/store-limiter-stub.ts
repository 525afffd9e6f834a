import type { CallerPresence } from '../../src/limiter/request.js';
import { StoreUnavailableError, UnavailableError } from '../../src/limiter/errors.js';
import type {
  Amended,
  CheckRequest,
  Decision,
  Holding,
  InstanceDetail,
  InstanceState,
  Peek,
  PeekRequest,
  RefundRequest,
  Remaining,
  RequestStatus,
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

  get waiting(): number {
    return this.asked.filter(({ waiter }) => !waiter.decided).length;
  }

  waitingOf(key: string): number {
    return this.asked.filter(({ request, waiter }) => request.key === key && !waiter.decided)
      .length;
  }

  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    if (!this.isAvailable(request.key)) return Promise.reject(new StoreUnavailableError());
    const waiter = new Waiter(`id ${this.asked.length}`);
    waiter.withdrawOnDisconnect(caller, () => this.withdrawn.push(waiter.requestId));
    this.asked.push({ request, waiter });
    return waiter.decision;
  }

  release(key: string, requestId: string): Promise<boolean> {
    this.released.push(requestId);
    return this.#answer(key, requestId.startsWith('id '));
  }

  amend(key: string, requestId: string): Promise<Amended | undefined> {
    return this.#answer(key, requestId.startsWith('id ') ? {} : undefined);
  }

  refund({ key }: RefundRequest): Promise<number> {
    return this.#answer(key, 0);
  }

  reportRemaining(key: string): Promise<Remaining> {
    return this.#answer(key, { remaining: 0 });
  }

  pause(key: string): Promise<number> {
    return this.#answer(key, 0);
  }

  giveBack(_key: string, requestId: string): void {
    this.released.push(requestId);
  }

  peek({ key }: PeekRequest): Promise<Peek> {
    return this.#answer(key, { outcome: 'approved' });
  }

  statusOf(key: string, requestId: string): Promise<RequestStatus | undefined> {
    return this.#answer(key, requestId.startsWith('id ') ? { status: 'approved' } : undefined);
  }

  inspect(key: string): Promise<InstanceState | undefined> {
    return this.#answer(key, instance(key));
  }

  examine(key: string): Promise<InstanceDetail | undefined> {
    return this.#answer(key, { ...instance(key), ...NOTHING_MORE });
  }

  holdings(key: string): Promise<readonly Holding[]> {
    return this.#answer(key, [HOLDING]);
  }

  endHold(key: string, handle: string): Promise<boolean> {
    return this.#answer(key, handle === HOLDING.handle);
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
