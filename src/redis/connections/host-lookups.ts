import type { LookupAddress, LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';

import { withinDeadline } from '../../common/deadline.js';
import { UnderWay } from '../../common/under-way.js';

type Asked = Pick<LookupOptions, 'family' | 'hints'>;

/** Looks up all addresses of a host name. */
type LookUp = (name: string, asked: Asked) => Promise<readonly LookupAddress[]>;

/** A host name for which DNS has no address now. The code is Node's, such as EAI_AGAIN. */
export class LookupError extends Error {
  override readonly name = 'LookupError';
  readonly code: string;

  constructor(name: string, cause: Error, lastAddresses: readonly LookupAddress[]) {
    const { code }: NodeJS.ErrnoException = cause;
    const list = lastAddresses.map(({ address }) => address).join(', ');
    const next =
      list && `; trying the last ${lastAddresses.length > 1 ? 'addresses' : 'address'} ${list}`;
    super(`DNS look-up of ${name} failed: ${code ?? cause.message}${next}`);
    this.code = code ?? 'ETIMEOUT';
  }
}

/**
 * Looks host names up, and remembers their addresses. While DNS does not answer, or no longer knows a name, the
 * addresses of its last look-up are used, since the server may well be up.
 */
export class HostLookups {
  /** By name and options. */
  readonly #lastAddresses = new Map<string, readonly LookupAddress[]>();
  /**
   * A look-up while DNS is down can occupy a thread for a minute, so a name has one at a time. If its caller gives up, it
   * goes on for the next caller.
   */
  readonly #underWay = new UnderWay<readonly LookupAddress[]>();

  constructor(private readonly lookUp: LookUp) {}

  /**
   * The look-up for the connections of one client.
   * @param patienceMillis how long DNS may take
   * @param onFailure called for each failed look-up. The error says what happens next
   */
  for(patienceMillis: number, onFailure: (error: LookupError) => void): LookupFunction {
    return (name, options, callback) => {
      const { family, hints, all } = options;
      const asked = { family, hints };
      this.#addressesOf(name, asked, patienceMillis, onFailure).then(
        ([first, ...more]) => {
          if (all) callback(null, first ? [first, ...more] : []);
          else callback(null, first?.address ?? '', first?.family);
        },
        (error: unknown) => callback(error as LookupError, []),
      );
    };
  }

  async #addressesOf(
    name: string,
    asked: Asked,
    patienceMillis: number,
    onFailure: (error: LookupError) => void,
  ): Promise<readonly LookupAddress[]> {
    const key = `${name} ${asked.family} ${asked.hints}`;
    const lookUp = async (): Promise<readonly LookupAddress[]> => {
      const addresses = await this.lookUp(name, asked);
      this.#lastAddresses.set(key, addresses);
      return addresses;
    };
    try {
      return await withinDeadline(this.#underWay.join(key, lookUp), patienceMillis);
    } catch (error) {
      const last = this.#lastAddresses.get(key) ?? [];
      const failure = new LookupError(name, error as Error, last);
      if (last.length === 0) throw failure;
      onFailure(failure);
      return last;
    }
  }
}
