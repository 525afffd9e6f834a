import type { CheckElement } from '../api.js';
import { SluiceError } from '../errors.js';
import type { ClientOptions } from '../options.js';
import {
  type Answer,
  type Call,
  type Exchange,
  exchangeByFetch,
  exchangeByHttp,
} from './exchange.js';

const SUCH_AS = 'such as http://localhost:8080';

/** A request to `/rate`, or about a key or one of its requests. */
export interface ServiceCall extends Omit<Call, 'path' | 'headers'> {
  readonly names?: readonly string[];
  readonly parameters?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Call['headers'];
  /** Aborted if its caller has left, which says nothing about the address. By default `signal`. */
  readonly gone?: AbortSignal;
}

/** A check that is sent alone. @param more parameters besides those of the element */
export function checkCall(
  { key, ...parameters }: CheckElement,
  more: ServiceCall['parameters'] = {},
): Omit<ServiceCall, 'signal'> {
  return { method: 'POST', names: [key], parameters: { ...more, ...parameters } };
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
    const addresses: readonly unknown[] = Array.isArray(url) ? url : [url];
    const bases = addresses.map(baseOf);
    if (bases.length === 0) throw new TypeError(`url must have an address, ${SUCH_AS}`);
    this.#exchanges = bases.map((base) =>
      send ? exchangeByFetch(base, send) : exchangeByHttp(base),
    );
  }

  get addresses(): number {
    return this.#exchanges.length;
  }

  async send(call: ServiceCall): Promise<Answer> {
    const { names = [], parameters = {}, headers, gone = call.signal, ...others } = call;
    const own = await this.#headers(call.body !== undefined);
    const path = pathOf(names, parameters);
    const address = this.#current;
    const exchange = this.#exchanges[address];
    if (!exchange) throw new TypeError(`url must have an address, ${SUCH_AS}`);
    try {
      const answer = await exchange({ ...others, path, headers: { ...own, ...headers } });
      // A replica that stops asks for it with each answer.
      if (answer.headers.connection === 'close') this.#leave(address);
      return answer;
    } catch (error) {
      if (!gone.aborted) this.#leave(address);
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

/** A caller in JavaScript may have given anything. */
function baseOf(address: unknown): URL {
  const text = String(address);
  const isText = typeof address === 'string' || address instanceof URL;
  const base = isText && URL.canParse(text) ? new URL(text) : undefined;
  // `localhost:8080` is an address as well, whose protocol is `localhost`.
  if (base?.protocol === 'http:' || base?.protocol === 'https:') return base;
  throw new TypeError(`url must be an address ${SUCH_AS}, not ${text}`);
}

function pathOf(
  names: readonly string[],
  parameters: NonNullable<ServiceCall['parameters']>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) query.set(name, String(value));
  }
  const path = ['/rate', ...names.map(encodeURIComponent)].join('/');
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}

async function tokenFrom(source: () => string | Promise<string>): Promise<string> {
  try {
    return await source();
  } catch (cause) {
    throw new SluiceError('no token available', { cause });
  }
}
