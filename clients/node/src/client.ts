import { performance } from 'node:perf_hooks';

import type { CheckElement, CheckResult, ReleaseElement, ReleaseResult } from './api.js';
import {
  decisionIn,
  decisionOf,
  demandSuccess,
  isFound,
  isReleased,
  peekIn,
  statusIn,
} from './calls/answers.js';
import { Batcher } from './calls/batcher.js';
import { type Answer, LATE_MILLIS } from './calls/exchange.js';
import * as known from './calls/known-options.js';
import { type Common, type Handling, PendingRequest, within } from './calls/pending-request.js';
import { approvalOf, type Hold, holderOf, whileHeld } from './calls/permit.js';
import { checkCall, Service, type ServiceCall } from './calls/service.js';
import { Wait, type Waiting } from './calls/wait.js';
import type { Approval, Decision, Peek, RequestStatus } from './decision.js';
import type {
  AskOptions,
  CheckOptions,
  ClientOptions,
  ListOptions,
  PeekOptions,
  PermitOptions,
  RenewOptions,
  PauseOptions,
  ReportOptions,
  RequestOptions,
  WaitOptions,
  WithPermitOptions,
} from './options.js';

const DEFAULT_TIMEOUT_MILLIS = 5000;
/** Fewer or more are not faster. With several, a slow bulk request does not delay the others. */
const DEFAULT_MAX_CALLS = 8;
/** Bridges the failover of a Redis, and does not block others for long after a crash. */
const DEFAULT_HOLD_MILLIS = 30_000;
const DEFAULT_RETRIES = 3;
/** Longer than a request of a wait takes, so that a place is kept if its replica freezes meanwhile. */
const DEFAULT_KEEP_MILLIS = 30_000;
/** Shorter than the default time limits of nearly all proxies. */
const DEFAULT_LONG_POLL_MILLIS = 25_000;

const NO_OPTIONS = {};

/** Asks Sluice for permission. One client for each process is enough, for any number of callers. */
export class SluiceClient {
  /** The holder of held approvals. */
  readonly #holder: string | undefined;
  readonly #common: Common;
  readonly #service: Service;
  readonly #checks: Batcher<CheckElement, CheckResult>;
  readonly #releases: Batcher<ReleaseElement, ReleaseResult>;
  readonly #waiting: Waiting;

  /** @throws TypeError for an invalid address or an unknown option, RangeError for a number that is too small or a holder that is too long */
  constructor(options: ClientOptions['url'] | ClientOptions) {
    const given = optionsOf(options);
    const service = new Service(given);
    this.#service = service;
    known.demandKnown(given, known.CLIENT);
    const { timeoutMillis = DEFAULT_TIMEOUT_MILLIS, maxCalls = DEFAULT_MAX_CALLS } = given;
    const { longPollMillis = DEFAULT_LONG_POLL_MILLIS } = given;
    demand('above 0', (value) => value > 0, { timeoutMillis, maxCalls, longPollMillis });
    const { retries = DEFAULT_RETRIES, keepMillis = DEFAULT_KEEP_MILLIS } = given;
    demand('at least 0', (value) => value >= 0, { retries, keepMillis });
    this.#holder = holderOf(given.holder);
    this.#common = { retries, addresses: service.addresses, timeoutMillis };
    this.#checks = new Batcher(maxCalls, (body, millis) =>
      within(millis + LATE_MILLIS, (signal) => service.send({ method: 'POST', body, signal })),
    );
    this.#releases = new Batcher(maxCalls, (body, millis) =>
      within(millis, (signal) => service.send({ method: 'DELETE', body, signal })),
    );
    this.#waiting = {
      ...this.#common,
      service,
      keepMillis,
      longPollMillis,
      release: (...approval) => this.release(...approval).catch(() => false),
      kept: { longestMillis: Infinity, believedUntil: 0 },
    };
  }

  /**
   * Asks for permission, and is approved or denied at once. The checks of one tick of the event loop share a request.
   * @throws TypeError for an unknown option, RangeError for a group that is empty or too long, SluiceError if Sluice
   *     rejects the check, SluiceUnavailableError if there is no decision
   */
  check(key: string, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    const wrong = faultIn(known.CHECK, options, key);
    if (wrong) return Promise.reject(wrong);
    const { quota, ...asking } = options;
    const element = this.#elementOf(key, asking);
    const handling: Handling<Decision> = {
      isRepeatable: false,
      send: (request) => {
        if (!quota) return this.#checks.add(element, request).then(decisionOf);
        const millis = request.timeoutMillis + LATE_MILLIS;
        const call = checkCall(element);
        const send = (signal: AbortSignal): Promise<Answer> =>
          this.#service.send({ ...call, signal });
        return within(millis, send).then(decisionIn);
      },
      // An approval that arrives after its caller has gone is released.
      late: (decision) => {
        if (decision.approved) void this.release(key, decision.requestId).catch(ignore);
      },
    };
    return new PendingRequest(handling, this.#common, options).value;
  }

  /**
   * Asks for permission, and waits for it in the key's queue. It is denied if the queue is full, or if its turn does
   * not come within `maxWaitMillis`. Without `maxWaitMillis` the wait has no limit. The wait keeps its place if its
   * connection or its replica is lost. Aborting gives up the place.
   * @throws as `check`
   */
  wait(key: string, options: WaitOptions = NO_OPTIONS): Promise<Decision> {
    const wrong = faultIn(known.WAIT, options, key);
    if (wrong) return Promise.reject(wrong);
    const { onProgress, ...asking } = options;
    const { signal, timeoutMillis = Infinity } = options;
    const wait = new Wait(this.#elementOf(key, asking), onProgress, this.#waiting);
    return new PendingRequest(wait, this.#common, { signal, timeoutMillis }).value;
  }

  /**
   * Says what a check would get now. Nothing is counted, and the answer promises nothing: another caller may be approved
   * before the check comes.
   * @throws as `check`
   */
  peek(key: string, options: PeekOptions = NO_OPTIONS): Promise<Peek> {
    const parameters = { peek: true, ...saidIn(options) };
    return this.#ask(peekIn, { method: 'GET', names: [key], parameters }, options, known.PEEK);
  }

  /**
   * Says what a request is now: whether it waits, where and for how long at least, or whether it is approved and until when
   * it is held. Nothing changes.
   * @returns undefined if the id is unknown or was released, or its approval is over
   * @throws as `check`
   */
  requestStatus(
    key: string,
    requestId: string,
    options: RequestOptions = NO_OPTIONS,
  ): Promise<RequestStatus | undefined> {
    const call = { method: 'GET', names: [key, requestId], parameters: {} } as const;
    return this.#ask(statusIn, call, options);
  }

  /**
   * Releases an approval, so that another caller can have it in this window.
   * @returns false if the approval no longer exists, for example since its window has ended or its hold has lapsed
   * @throws as `check`
   */
  release(key: string, requestId: string, options: RequestOptions = NO_OPTIONS): Promise<boolean> {
    const wrong = faultIn(known.REQUEST, options, key, requestId);
    if (wrong) return Promise.reject(wrong);
    const element = { key, request_id: requestId };
    return this.#change(options, (request) =>
      this.#releases.add(element, request).then(isReleased),
    );
  }

  /**
   * Corrects the hits of an approval that still counts, for example once the true cost of a call is known. With more
   * hits than before, the approvals of the window may exceed the maximum: then nobody is approved until there is room.
   * Its hold is renewed, if it is held.
   * @param hits 0 or more
   * @returns false if the approval no longer exists
   * @throws as `check`
   */
  correct(
    key: string,
    requestId: string,
    hits: number,
    options: RequestOptions = NO_OPTIONS,
  ): Promise<boolean> {
    const call = { method: 'PUT', names: [key, requestId], parameters: { hits } } as const;
    return this.#ask(isFound, call, options);
  }

  /**
   * Renews the hold of an approval.
   * @returns false if the approval no longer exists, or is not held
   * @throws as `check`
   */
  renew(key: string, requestId: string, options: RenewOptions = NO_OPTIONS): Promise<boolean> {
    const call = { method: 'PUT', names: [key, requestId], parameters: saidIn(options) } as const;
    return this.#ask(isFound, call, options, known.RENEW);
  }

  /**
   * Pauses a key, or one group of it, for all callers: nobody is approved until the pause ends, and waiters keep their
   * places.
   * @param millis from now on, up to 86,400,000; 0 ends the pause
   * @throws as `check`
   */
  pause(key: string, millis: number, options: PauseOptions = NO_OPTIONS): Promise<void> {
    const parameters = { pauseMillis: millis, ...saidIn(options) };
    const call = { method: 'PUT', names: [key], parameters } as const;
    return this.#ask(demandSuccess, call, options, known.PAUSE);
  }

  /**
   * Reports how much remains of a quota that Sluice does not count alone, such as a vendor's. If Sluice believes that
   * more remains, only so much is approved from now on, until the quota resets. A report never makes room.
   * @param remaining a whole number of 0 or more
   * @throws as `check`; SluiceError with the status 400 if the limit is not a fixed window
   */
  reportRemaining(
    key: string,
    remaining: number,
    options: ReportOptions = NO_OPTIONS,
  ): Promise<void> {
    const parameters = { remaining, ...saidIn(options) };
    const call = { method: 'PUT', names: [key], parameters } as const;
    return this.#ask(demandSuccess, call, options, known.REPORT);
  }

  /**
   * Waits for permission, or asks once if `wait` is false.
   * @returns the id to release it with
   * @throws SluiceDeniedError if it is denied; as `check`
   */
  async permit(key: string, options: PermitOptions = NO_OPTIONS): Promise<string> {
    return (await this.#approval(key, options)).requestId;
  }

  /**
   * Waits for permission, runs `work` while it holds and renews the permit, and releases the permit, whether or not
   * `work` throws. A failed release is told to `onReleaseError` only: the permit ends with its hold.
   * @param work gets a signal, which is aborted when the permit is lost, with a SluicePermitLostError, and when
   *     `options.signal` is aborted; and the id of the permit, for `correct`
   * @returns the result of `work`, also after the permit was lost
   * @throws as `permit`; SluicePermitLostError if the permit is lost before `work` begins; what `work` throws
   */
  async withPermit<T>(
    key: string,
    work: (signal: AbortSignal, requestId: string) => T | Promise<T>,
    {
      holdMillis: given = DEFAULT_HOLD_MILLIS,
      onReleaseError,
      ...options
    }: WithPermitOptions = NO_OPTIONS,
  ): Promise<T> {
    const holdMillis = given === false ? undefined : given;
    const askedAt = performance.now();
    const { requestId, uncounted } = await this.#approval(key, { ...options, holdMillis });
    const renew: Hold['renew'] = (signal, millis) => {
      const timeoutMillis = Math.min(millis, this.#common.timeoutMillis);
      return this.renew(key, requestId, { signal, timeoutMillis });
    };
    const isHeld = holdMillis !== undefined && !uncounted;
    return whileHeld(
      isHeld ? { key, requestId, holdMillis, renew } : undefined,
      askedAt,
      options.signal,
      (signal) => work(signal, requestId),
      () => this.release(key, requestId).catch(onReleaseError ?? ignore),
    );
  }

  /** What a check asks for, with its holder if the approval is to be held. */
  #elementOf<Options extends AskOptions>(key: string, options: Options) {
    const element = { key, ...saidIn(options) };
    return options.holdMillis === undefined ? element : { ...element, holder: this.#holder };
  }

  /** Sends a request of another kind. Nothing has to be done about an answer that arrives after its caller has gone. */
  #change<Value>(options: RequestOptions, send: Handling<Value>['send']): Promise<Value> {
    return new PendingRequest({ send, isRepeatable: true }, this.#common, options).value;
  }

  /** Sends a request that is neither a check nor a release, unless something is wrong with it. */
  #ask<Value>(
    read: (answer: Answer) => Value,
    call: Omit<ServiceCall, 'signal'>,
    options: RequestOptions,
    names: Readonly<Record<string, true>> = known.REQUEST,
  ): Promise<Value> {
    const [key = '', requestId] = call.names ?? [];
    const wrong = faultIn(names, options, key, requestId);
    if (wrong) return Promise.reject(wrong);
    return this.#change(options, (request) =>
      this.#service.send({ ...call, signal: request.gone }).then(read),
    );
  }

  /** @throws as `permit` */
  async #approval(key: string, options: PermitOptions): Promise<Approval> {
    known.demandKnown(options, known.PERMIT);
    return approvalOf(this, key, options);
  }
}

/** What a failed release leads to by default: the approval ends with its hold or its window. */
const ignore = (): undefined => undefined;

/** @param given anything, by a caller in JavaScript; the service finds out what is no address */
function optionsOf(given: unknown): ClientOptions {
  const isUrl = typeof given !== 'object' || given instanceof URL || Array.isArray(given);
  return (isUrl ? { url: given } : (given ?? {})) as ClientOptions;
}

/** What is wrong with a call: an unknown option, or a text that can't be sent. */
function faultIn(
  names: Readonly<Record<string, true>>,
  options: object,
  key: string,
  requestId = '',
): Error | undefined {
  return (
    (options === NO_OPTIONS ? undefined : known.unknownOption(options, names)) ??
    known.notUnicode('key', key) ??
    known.notUnicode('requestId', requestId) ??
    known.faultOfGroup((options as ListOptions).group)
  );
}

function demand(
  bound: string,
  isWithin: (value: number) => boolean,
  numbers: Readonly<Record<string, number>>,
): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (!isWithin(value)) throw new RangeError(`${name} must be ${bound}, not ${value}`);
  }
}

/** What a request asks for, without how long it may take. */
function saidIn<Options extends RequestOptions>({
  signal: _signal,
  timeoutMillis: _timeoutMillis,
  ...said
}: Options): Omit<Options, keyof RequestOptions> {
  return said;
}
