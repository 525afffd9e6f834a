import type { Random } from '../../random.js';
import type { Approvals } from '../approvals.js';
import type { Clients } from '../clients.js';
import { type Held, MOST_ELEMENTS, type Requests } from '../requests.js';

/** What a load is made of. It adds clients that act on the keys. */
export interface LoadParts {
  readonly clients: Clients;
  readonly requests: Requests;
  readonly approvals: Approvals;
  readonly random: Random;
  readonly keys: readonly string[];
  readonly grpcPort: number;
  /** Whether Redis may forget a release: nobody would be served then until the window ends. */
  readonly mayForget: boolean;
}

/** A window so long that all that happens in a cell is in it. */
export const LONGER_THAN_A_CELL = 6 * 3_600_000;

/** A kind of load. */
export interface Load {
  /** The maximum of each key. */
  readonly maximum: number;
  readonly mostKeys: number;
  /** The length of the first window of each key. By default all that happens in a cell is in one window. */
  readonly firstWindowMillis?: number;
  begin(parts: LoadParts): void;
  /** Makes the keys shortly before the fault. */
  readonly makeKeys?: (parts: LoadParts) => Promise<void>;
}

/** In groups for as many clients, each of no more than a bulk request takes. */
export function shared(keys: readonly string[], clients: number): string[][] {
  const size = Math.min(MOST_ELEMENTS, Math.ceil(keys.length / clients));
  return Array.from({ length: Math.ceil(keys.length / size) }, (_, i) =>
    keys.slice(i * size, (i + 1) * size),
  );
}

/** Releases approvals, again and again until each is decided. */
export async function releaseAll(
  { requests, clients }: LoadParts,
  approvals: readonly Held[],
): Promise<void> {
  let held = approvals;
  while ((held = await requests.releaseMany(held)).length > 0) await clients.pause();
}

/** Releases one approval, again and again until it is decided. */
export async function releaseOne({ requests, clients }: LoadParts, held: Held): Promise<void> {
  while (!(await requests.release(held))) await clients.pause();
}
