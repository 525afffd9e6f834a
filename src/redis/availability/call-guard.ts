import { setTimeout as delay } from 'node:timers/promises';

import { StoreFullError, StoreUnavailableError } from '../../limiter/errors.js';
import { KeysForTime } from '../../common/collections.js';
import { FrequentLog } from '../../common/frequent-log.js';
import { backoffMillis, type CallLoad, type CallOutcome } from '../shared/store-observer.js';
import { type Breaker, Breakers, type BreakersParts } from './breakers.js';
import { TimeoutError, withinDeadline } from '../../common/deadline.js';
import { classifyFailure, explained, type Failure, isDemoted } from './store-errors.js';

const FIRST_RETRY_MILLIS = 10;
/** The most work under way for one shard, which can't answer more in time. More would only take memory. */
const MAX_UNDER_WAY = 20_000;
/** A call whose connection broke may arrive this long after it, if the network still had it. */
const LOST_CALL_MILLIS = 1000;
/** The least time between two reconnects to a shard after its server was demoted. */
const DEMOTED_INTERVAL_MILLIS = 250;

/** A call to the store. */
export interface Call<Reply> extends Omit<CallLoad, 'operation'> {
  /** The command that ran the script in the last attempt. */
  readonly operation?: (() => CallLoad['operation']) | undefined;
  /** The name of the script, for logs and metrics. */
  readonly script: string;
  /** A name in Redis that the call touches, which decides the shard. */
  readonly name: string;
  /** The success of a write shows that the store accepts writes. */
  readonly isWrite: boolean;
  /** Whether the call may be sent again although it may have run. */
  readonly isRepeatable: boolean;
  /**
   * @param attempt 1, then 2 and so on when the call is sent again
   * @param isWanted whether anybody still waits for the reply
   */
  send(attempt: number, isWanted: () => boolean): Promise<Reply>;
}

/**
 * Ends every call to the store within a bounded time: with its reply, or with a StoreUnavailableError. A call that
 * fails for a moment, as in a failover or when a connection is cut, is sent again within that time. A store that is
 * known to be down gets no new calls.
 */
export class CallGuard {
  readonly breakers: Breakers;
  /** By script. */
  readonly #failures: FrequentLog<string>;
  #lastReason: unknown;
  /** The shards whose connections were renewed after a demotion. */
  readonly #renewed: KeysForTime;

  constructor(private readonly parts: BreakersParts) {
    this.breakers = new Breakers(parts);
    this.#renewed = new KeysForTime(DEMOTED_INTERVAL_MILLIS, parts.clock);
    this.#failures = new FrequentLog(parts.clock, (failures) => {
      const reason =
        this.#lastReason instanceof Error ? this.#lastReason.message : this.#lastReason;
      parts.logger.warn({ failures, reason }, 'store call failed');
    });
  }

  async run<Reply>(call: Call<Reply>): Promise<Reply> {
    const breaker = this.breakers.of(call.name);
    this.#openIfRefused(breaker, call.name);
    if (breaker.isOpen) throw notAsked('it is known to be down');
    if (breaker.underWay + call.size > MAX_UNDER_WAY) throw notAsked('too much is under way');
    breaker.underWay += call.size;
    const startedAt = performance.now();
    const attempts = new Attempts(call, (failure, error) => this.#heal(call.name, failure, error));
    const running = attempts.run();
    // A call that has missed its deadline stays under way until its reply comes, or its connection ends.
    const hasEnded = (): void => void (breaker.underWay -= call.size);
    running.then(hasEnded, hasEnded);
    try {
      const reply = await withinDeadline(running, this.parts.timeoutMillis);
      this.#ended(call, startedAt, 'ok');
      if (call.isWrite) breaker.succeeded();
      return reply;
    } catch (error) {
      throw this.#failed(call, breaker, attempts, running, error, startedAt);
    } finally {
      attempts.end();
    }
  }

  /** Logs the failures of the last second. */
  close(): void {
    this.#failures.close();
  }

  /** In the time that a call may take, a server that restarts or a Service of Kubernetes can accept connections again. */
  #openIfRefused(breaker: Breaker, name: string): void {
    const { connections, timeoutMillis } = this.parts;
    if (breaker.isOpen || connections.refusedMillis() < timeoutMillis) return;
    breaker.open(name, connections.lastError());
  }

  #failed(
    call: Call<unknown>,
    breaker: Breaker,
    attempts: Attempts<unknown>,
    running: Promise<unknown>,
    error: unknown,
    startedAt: number,
  ): unknown {
    const cause = error instanceof TimeoutError ? (attempts.lastError ?? error) : error;
    const failure = classifyFailure(cause);
    const { mayHaveRun } = attempts;
    if (failure === 'fault') {
      this.#ended(call, startedAt, 'fault');
      return error;
    }
    this.#ended(call, startedAt, mayHaveRun ? 'unknown' : 'not_run');
    const reason = explained(cause, this.parts.connections.lastError());
    this.#lastReason = reason;
    this.#failures.note(call.script);
    const ended = mayHaveRun ? hasEnded(running, attempts) : undefined;
    if (failure === 'full') return new StoreFullError({ cause, mayHaveRun, ended });
    // A moving slot, or a key of another version, says nothing about the rest of its shard.
    if (failure !== 'moving' && failure !== 'other_form') breaker.failed(call.name, reason);
    return new StoreUnavailableError({ cause, mayHaveRun, ended });
  }

  #ended(call: Call<unknown>, startedAt: number, outcome: CallOutcome): void {
    const { script, operation, size, traces } = call;
    if (operation === undefined) return;
    const seconds = (performance.now() - startedAt) / 1000;
    this.parts.observer.called(script, seconds, outcome, { operation: operation(), size, traces });
  }

  #heal(name: string, failure: Failure, error: unknown): void {
    const { connections } = this.parts;
    if (isDemoted(error)) {
      const shard = connections.shardOf(name);
      if (this.#renewed.has(shard)) return;
      this.#renewed.add(shard);
      connections.renew(shard);
    } else if (failure !== 'moving') {
      connections.refresh();
    }
  }
}

/** One call, sent until it is answered, can't be sent again, or is ended. */
class Attempts<Reply> {
  /** The error of the last attempt; undefined while one is under way. */
  lastError: unknown;
  /** Whether the reply to an attempt is lost, so that nothing will say whether or when it has run. */
  hasLostReply = false;
  #isSent = false;
  #isOver = false;

  constructor(
    private readonly call: Call<Reply>,
    private readonly onFailure: (failure: Failure, error: unknown) => void,
  ) {}

  get mayHaveRun(): boolean {
    return this.hasLostReply || this.#isSent;
  }

  async run(): Promise<Reply> {
    const isWanted = (): boolean => !this.#isOver;
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#isSent = true;
        this.lastError = undefined;
        return await this.call.send(attempt, isWanted);
      } catch (error) {
        this.lastError = error;
        this.#isSent = false;
        const failure = classifyFailure(error);
        if (failure === 'unknown') this.hasLostReply = true;
        if (!this.#maySendAgain(failure)) throw error;
        this.onFailure(failure, error);
      }
      await delay(backoffMillis(attempt, FIRST_RETRY_MILLIS));
      if (!isWanted()) throw this.lastError;
    }
  }

  end(): void {
    this.#isOver = true;
  }

  #maySendAgain(failure: Failure): boolean {
    if (this.#isOver) return false;
    if (failure === 'unknown') return this.call.isRepeatable;
    return failure === 'passing' || failure === 'moving';
  }
}

/**
 * Settles when no attempt can run any more. After a reply that is certain: what was sent on its connection has run. A
 * call whose connection broke may still be on its way.
 */
async function hasEnded(running: Promise<unknown>, attempts: Attempts<unknown>): Promise<void> {
  await running.catch(() => undefined);
  if (attempts.hasLostReply) await delay(LOST_CALL_MILLIS, undefined, { ref: false });
}

function notAsked(why: string): StoreUnavailableError {
  return new StoreUnavailableError({ cause: new Error(`the store was not asked: ${why}`) });
}
