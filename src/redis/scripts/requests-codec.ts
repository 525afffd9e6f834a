import type { RequestIdConflict } from '../../limiter/errors.js';
import type { CheckRequest } from '../../limiter/limiter.js';
import { DEFAULT_WEIGHT, type QueueList, type QueueListState } from '../../limiter/queue-order.js';
import { type RequestTerms, TERMS } from '../../limiter/request.js';

/** What scripts are told of a request beside its terms. */
const OF_CHECK = ['canWait', 'noPlace', 'takesRest'] as const satisfies (keyof CheckRequest)[];

const NAMES = [...TERMS, ...OF_CHECK];

/** What scripts are told of a request. */
export type AskedRequest = RequestTerms & Pick<CheckRequest, (typeof OF_CHECK)[number]>;

/**
 * What `lua/lib/requests.lua` reads of a request, for JSON.
 * @param more what else there is to say of it
 */
export function sayRequest(request: Partial<AskedRequest>, more: object = {}): object {
  const said: Record<string, unknown> = { ...more };
  for (const name of NAMES) {
    const value = request[name];
    const isDefault = value === undefined || value === false || (name === 'hits' && value === 1);
    if (!isDefault) said[name] = value;
  }
  if (request.list) said.list = sayList(request.list);
  return said;
}

/** The list of a request, as `lua/lib/requests.lua` reads it. */
export function sayList(list: QueueList): QueueList {
  return { ...list, name: encodeURIComponent(list.name) };
}

/** The id of a group in `lua/queue/lists.lua`; '' for none. */
export function encodeGroup(group: string | undefined): string {
  return group === undefined ? '' : `group:${encodeURIComponent(group)}`;
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
    : { kind, name, weight, maxRequests: undefined, headStartMillis: said.headStartMillis };
}

/** The list with an id of `lua/queue/lists.lua`. */
export function decodeListId(id: string): Pick<QueueListState, 'kind' | 'name'> {
  const [kind = '', name = ''] = id.split(':');
  return { kind: kind as QueueListState['kind'], name: decodeURIComponent(name) };
}

/** A wait that has ended without an approval, since its caller has chosen the request id. */
export interface EndedWait {
  readonly claim: string;
  readonly why: Extract<RequestIdConflict, 'taken_over' | 'withdrawn'>;
}

/**
 * A claim as Redis writes it: `<request id>`, or `<request id>#<replica id>#<number>` if its caller has chosen the id.
 * @returns the claim on this replica; undefined if it is another replica's
 */
export function claimHere(text: string, replicaId: string): string | undefined {
  // Nearly all.
  if (!text.includes('#')) return text;
  const [requestId = '', ...owner] = text.split('#');
  const number = owner.pop();
  return owner.join('#') === replicaId ? `${requestId}#${number ?? ''}` : undefined;
}

/** The waits on this replica among claims with `!<why>` after each. */
export function endedHere(texts: readonly string[], replicaId: string): EndedWait[] {
  return texts.flatMap((text) => {
    const [claim = '', why] = text.split('!');
    const here = claimHere(claim, replicaId);
    return here === undefined ? [] : [{ claim: here, why: why as EndedWait['why'] }];
  });
}

/** A list in JSON from a script. Lua has no other empty list than an empty object. */
export type SaidItems<Item> = readonly Item[] | Readonly<Record<string, never>>;

export function itemsIn<Item>(said: SaidItems<Item>): readonly Item[] {
  return Array.isArray(said) ? (said as readonly Item[]) : [];
}
