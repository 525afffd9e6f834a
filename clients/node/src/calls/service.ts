import { clearTimeout } from 'node:timers';

import type { CheckElement } from '../api.js';
import { SluiceError, SluiceTimeoutError } from '../errors.js';
import type { ClientOptions } from '../options.js';
import {
  type Answer,
  type Call,
  type Exchange,
  exchangeByFetch,
  exchangeByHttp,
  LATE_MILLIS,
} from './exchange.js';
import { onAbort, setTimer } from './pending-request.js';

const SUCH_AS = 'such as http://localhost:8080';

export interface WaitElement extends CheckElement {
  readonly maxWaitMillis?: number | undefined;
}

/** A check that waits, whose place is kept. */
export interface KeptElement extends WaitElement {
  readonly requestId: string;
  readonly keepMillis: number;
}

/** A request that is neither a check nor a release: about a key, or one of its requests. */
export interface LoneCall {
  readonly method: 'GET' | 'PUT';
  readonly names: readonly [key: string] | readonly [key: string, requestId: string];
  readonly parameters: Parameters;
}

/**
 * The requests to Sluice. Each throws a SluiceError if there is no answer. All of them go to one address, until that
 * can't be reached or stops; then to the next.
 */
export class Service {
  readonly #exchanges: readonly Exchange[];
  #current = 0;

  /** @throws TypeError for an invalid address, or without any */
  constructor(private readonly options: ClientOptions) {
    const { url, fetch: send } = options;
    const bases = (isAddress(url) ? [url] : url).map(baseOf);
    if (bases.length === 0) throw new TypeError(`url must have an address, ${SUCH_AS}`);
    this.#exchanges = bases.map((base) =>
      send ? exchangeByFetch(base, send) : exchangeByHttp(base),
    );
  }

  get addresses(): number {
    return this.#exchanges.length;
  }

  /**
   * Sends a bulk request of checks or of releases.
   * @param onLate gets an answer that comes a little after the time limit
   */
  callMany(
    method: 'POST' | 'DELETE',
    body: string,
    timeoutMillis: number,
    onLate?: (answer: Answer) => void,
  ): Promise<Answer> {
    return this.#callWithin(timeoutMillis, { method, path: '/rate', body }, onLate);
  }

  /** Sends one check that does not wait. @param onLate as of `callMany` */
  checkOne(
    { key, ...parameters }: CheckElement,
    timeoutMillis: number,
    onLate: (answer: Answer) => void,
  ): Promise<Answer> {
    const call = { method: 'POST', path: pathOf([key], parameters) } as const;
    return this.#callWithin(timeoutMillis, call, onLate);
  }

  /** Sends a check that waits. Aborting withdraws it. An approval that was on its way by then is still an answer. */
  wait({ key, ...parameters }: WaitElement, signal: AbortSignal): Promise<Answer> {
    const path = pathOf([key], { canWait: true, ...parameters });
    return this.#call({ method: 'POST', path, signal, isWithdrawn: true });
  }

  /**
   * Sends a check that waits, and whose place stays when its connection ends. Aborting closes the connection.
   * @param seconds after which it is answered with its place if it still waits
   * @param timeoutMillis after which the answer is taken for lost
   */
  async waitKept(
    { key, ...parameters }: KeptElement,
    seconds: number,
    timeoutMillis: number,
    signal: AbortSignal,
  ): Promise<Answer> {
    const connection = new AbortController();
    const close = (): void => connection.abort();
    const endListening = onAbort(signal, close);
    const address = this.#current;
    const outOfTime = (): void => {
      this.#leave(address);
      close();
    };
    const timer = setTimer(outOfTime, timeoutMillis, undefined);
    const path = pathOf([key], { canWait: true, ...parameters });
    const headers = { Prefer: `wait=${seconds}` };
    try {
      return await this.#call({ method: 'POST', path, headers, signal: connection.signal });
    } finally {
      clearTimeout(timer);
      endListening();
    }
  }

  callAlone({ method, names, parameters }: LoneCall, signal: AbortSignal): Promise<Answer> {
    return this.#call({ method, path: pathOf(names, parameters), signal });
  }

  #callWithin(
    timeoutMillis: number,
    call: Omit<Call, 'headers' | 'signal'>,
    onLate?: (answer: Answer) => void,
  ): Promise<Answer> {
    const connection = new AbortController();
    const answer = this.#call({ ...call, signal: connection.signal });
    return new Promise((resolve, reject) => {
      const outOfTime = (): void => {
        if (!onLate) {
          connection.abort();
          return;
        }
        const message = `no answer within ${timeoutMillis} ms`;
        reject(new SluiceTimeoutError(message, { mayHaveCounted: true }));
        answer.then(onLate, () => undefined);
        timer = setTimer(abort, LATE_MILLIS, connection);
      };
      let timer = setTimer(outOfTime, timeoutMillis, undefined);
      void answer.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  async #call(call: Omit<Call, 'headers'> & Partial<Pick<Call, 'headers'>>): Promise<Answer> {
    const headers = { ...(await this.#headers(call.body !== undefined)), ...call.headers };
    const address = this.#current;
    const exchange = this.#exchanges[address];
    if (!exchange) throw new TypeError(`url must have an address, ${SUCH_AS}`);
    try {
      const answer = await exchange({ ...call, headers });
      // A replica that stops asks for it with each answer.
      if (answer.headers.connection === 'close') this.#leave(address);
      return answer;
    } catch (error) {
      if (!call.signal.aborted) this.#leave(address);
      throw error;
    }
  }

  /** Of several requests that an address fails, only the first leads to the next address. */
  #leave(address: number): void {
    if (this.#current === address) this.#current = (address + 1) % this.addresses;
  }

  async #headers(hasBody: boolean): Promise<Record<string, string>> {
    const { token, correlationId } = this.options;
    const headers: Record<string, string> = {};
    if (hasBody) headers['Content-Type'] = 'application/json';
    const id = correlationId?.();
    if (id !== undefined) headers['X-Correlation-ID'] = id;
    if (token === undefined) return headers;
    headers.Authorization = `Bearer ${typeof token === 'string' ? token : await tokenFrom(token)}`;
    return headers;
  }
}

/** Whether a value is one address, as it is given. */
export function isAddress(value: unknown): value is string | URL {
  return typeof value === 'string' || value instanceof URL;
}

function baseOf(address: string | URL): URL {
  const base = isAddress(address) && URL.canParse(String(address)) ? new URL(address) : undefined;
  // `localhost:8080` is an address as well, whose protocol is `localhost`.
  if (base?.protocol === 'http:' || base?.protocol === 'https:') return base;
  throw new TypeError(`url must be an address ${SUCH_AS}, not ${String(address)}`);
}

type Parameters = Readonly<Record<string, string | number | boolean | undefined>>;

function pathOf(names: readonly string[], parameters: Parameters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query.set(name, String(value));
  }
  const path = ['/rate', ...names.map(encodeURIComponent)].join('/');
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

function abort(call: AbortController): void {
  call.abort();
}

async function tokenFrom(source: () => string | Promise<string>): Promise<string> {
  try {
    return await source();
  } catch (cause) {
    throw new SluiceError('no token available', { cause });
  }
}
