import type { CheckElement } from '../../api/bulk-schemas.js';
import { SluiceError } from '../errors.js';
import type { ClientOptions } from '../options.js';
import {
  type Answer,
  type Call,
  type Exchange,
  exchangeByFetch,
  exchangeByHttp,
  unanswered,
} from './exchange.js';
import { setTimer } from './timers.js';

/** A check that waits. */
export interface WaitElement extends CheckElement {
  readonly maxWaitMillis?: number | undefined;
}

/** A pause of a key. */
export interface PauseElement {
  readonly key: string;
  readonly pauseMillis: number;
}

/** What changes about an approval. In any case its hold is renewed, if it is held. */
export interface AmendElement {
  readonly key: string;
  readonly requestId: string;
  readonly hits?: number | undefined;
  readonly holdMillis?: number | undefined;
}

/** The requests to Sluice. Each throws a SluiceError if there is no answer. */
export class Service {
  readonly #exchange: Exchange;

  constructor(private readonly options: ClientOptions) {
    const base = new URL(options.url);
    this.#exchange = options.fetch ? exchangeByFetch(base, options.fetch) : exchangeByHttp(base);
  }

  /** Sends a bulk request of checks or of releases. */
  async callMany(method: 'POST' | 'DELETE', body: string, timeoutMillis: number): Promise<Answer> {
    const deadline = new AbortController();
    const timer = setTimer(abort, timeoutMillis, deadline);
    try {
      return await this.#call({ method, path: '/rate', body, signal: deadline.signal });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends a check that waits. Aborting closes its connection, which withdraws the check. */
  wait({ key, ...parameters }: WaitElement, signal: AbortSignal): Promise<Answer> {
    const path = pathOf([key], { canWait: true, ...parameters });
    return this.#call({ method: 'POST', path, signal });
  }

  pause({ key, pauseMillis }: PauseElement, signal: AbortSignal): Promise<Answer> {
    return this.#call({ method: 'PUT', path: pathOf([key], { pauseMillis }), signal });
  }

  amend({ key, requestId, ...changes }: AmendElement, signal: AbortSignal): Promise<Answer> {
    return this.#call({ method: 'PUT', path: pathOf([key, requestId], changes), signal });
  }

  async #call(call: Omit<Call, 'headers'>): Promise<Answer> {
    const headers = await this.#headers(call.body !== undefined);
    try {
      return await this.#exchange({ ...call, headers });
    } catch (error) {
      throw unanswered(error);
    }
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

type Parameters = Readonly<Record<string, string | number | boolean | undefined>>;

/** The path of a single request, with the parameters that are given. */
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
