import type { CheckRequest } from '../../limiter/limiter.js';
import { DEFAULT_WEIGHT, type QueueList, type QueueListState } from '../../limiter/queue-order.js';

/** The fields of a request that scripts get beside its list, each with a value that says nothing. */
const FIELDS = {
  canWait: false,
  noPlace: false,
  hits: 1,
  holdMillis: undefined,
  holder: undefined,
  keepMillis: undefined,
  maxWaitMillis: undefined,
  takesRest: false,
} as const satisfies Partial<CheckRequest>;

const NAMES = Object.keys(FIELDS) as (keyof typeof FIELDS)[];

/** What scripts are told of a request. */
export type AskedRequest = Pick<CheckRequest, keyof typeof FIELDS | 'list'>;

/**
 * What `lua/lib/requests.lua` reads of a request, for JSON.
 * @param more what else there is to say of it
 */
export function sayRequest(request: Partial<AskedRequest>, more: object = {}): object {
  const said: Record<string, unknown> = { ...more, list: request.list && sayList(request.list) };
  for (const name of NAMES) {
    if (request[name] !== FIELDS[name]) said[name] = request[name];
  }
  return said;
}

/** What `lists.of_request` in `lua/queue/lists.lua` reads. */
export function sayList(list: QueueList): QueueList {
  return { ...list, name: encodeURIComponent(list.name) };
}

/** The list of a request as scripts have it; nothing of the one list of a key. */
export interface SaidList {
  readonly kind?: QueueList['kind'];
  readonly name?: string;
  readonly headStartMillis?: number;
  readonly weight?: number;
}

/** @returns undefined if its key has one list */
export function listOfPlace(said: SaidList): QueueList | undefined {
  if (said.kind === undefined) return undefined;
  const { kind, headStartMillis = 0, weight = DEFAULT_WEIGHT } = said;
  const name = decodeURIComponent(said.name ?? '');
  return kind === 'lane'
    ? { kind, name, headStartMillis }
    : { kind, name, weight, maxRequests: undefined };
}

/** The list with an id of `lua/queue/lists.lua`. */
export function decodeListId(id: string): Pick<QueueListState, 'kind' | 'name'> {
  const [kind = '', name = ''] = id.split(':');
  return { kind: kind as QueueListState['kind'], name: decodeURIComponent(name) };
}
