import { UnavailableError } from '../../limiter/errors.js';
import type { HeldApproval } from '../../limiter/holdings.js';
import type { InstanceDetail, InstanceState, Peek, RequestStatus } from '../../limiter/limiter.js';
import { forEachLimit, type LimitState } from '../../limiter/limits.js';
import type { QueueList, QueueListState } from '../../limiter/queue-order.js';
import { type KeyNames, storedNames } from '../shared/key-names.js';
import { VERDICT } from './check-codec.js';
import { limitsIn, quotasIn, type UsedOfGroups, type UsedOfLimits } from './limits-codec.js';
import { decodeListId, itemsIn, type SaidItems } from './requests-codec.js';

/** What Redis says of a key. */
export type InspectReply = Omit<InstanceState, 'key'>;

/** What `lua/inspect.lua` replies for a key. */
interface InspectSaid extends Omit<InspectReply, 'limits' | 'maxRequestsInQueue'> {
  readonly limits: string;
  readonly counted: readonly (Pick<LimitState, 'used' | 'millisToWindowEnd'> &
    Partial<Pick<LimitState, 'windowMillis'>>)[];
}

/** What `lua/examine.lua` replies. */
interface ExamineSaid extends InspectSaid, Pick<InstanceDetail, 'isRecovering'> {
  readonly windowIsSet: boolean;
  readonly queue: SaidItems<InstanceDetail['queue'][number]>;
  readonly lists: SaidItems<Omit<QueueListState, 'kind' | 'name'> & { readonly id: string }>;
  readonly groups?: SaidItems<{ readonly id: string; readonly used: SaidItems<number> }>;
  readonly listCount: number;
  readonly replicas: SaidItems<InstanceDetail['replicas'][number]>;
}

/** The KEYS of `lua/inspect.lua` for one limiter key. */
export function keysToInspect({ state, records, replicas }: KeyNames): string[] {
  return [state, records, replicas];
}

/**
 * @returns for each key its state, nothing if there is none, or its error
 * @throws Error if the reply is no list
 */
export function decodeInstances(reply: unknown): (InspectReply | undefined | Error)[] {
  if (!Array.isArray(reply)) throw new Error('the reply of inspect is no list');
  return (reply as readonly unknown[]).map((said) => {
    if (said instanceof Error) return said;
    try {
      return said === '' ? undefined : instanceOf(JSON.parse(said as string) as InspectSaid);
    } catch (error) {
      return error as Error;
    }
  });
}

/** @throws Error if a number is missing, or the text of the limits is none */
function instanceOf(said: InspectSaid): InspectReply {
  const { counted, denied, waiting, held, pausedMillis } = said;
  const numbers = { denied, waiting, held, pausedMillis };
  if (Object.values(numbers).some((number) => typeof number !== 'number')) {
    throw new Error('the reply for a key lacks a number');
  }
  const { limits, limitsOfGroups, maxRequestsInQueue } = limitsIn(said.limits);
  return {
    ...(limitsOfGroups.length > 0 && { limitsOfGroups }),
    limits: forEachLimit(limits, (limit, i) => ({
      ...limit,
      ...(counted[i] ?? { used: 0, millisToWindowEnd: 0 }),
    })),
    ...{ maxRequestsInQueue, ...numbers },
  };
}

/** The KEYS of `lua/examine.lua`. */
export function keysToExamine({ state, queue, records, replicas }: KeyNames): string[] {
  return [state, queue, records, replicas];
}

/** @returns undefined if there is no such key */
export function decodeExamined(reply: unknown, names: KeyNames): InstanceDetail | undefined {
  if (reply === '') return undefined;
  const said = JSON.parse(reply as string) as ExamineSaid;
  const { windowIsSet, isRecovering, queue, lists, listCount, groups, replicas } = said;
  const instance = instanceOf(said);
  return {
    key: names.key,
    ...instance,
    names: storedNames(names, [...instance.limits, ...(instance.limitsOfGroups ?? [])]),
    overridden: { ...limitsIn(said.limits).overridden, windowMillis: windowIsSet },
    isRecovering,
    queue: itemsIn(queue),
    // Nothing of a queue with one list.
    ...(listCount > 0 && {
      lists: itemsIn(lists).map(({ id, stoppedMillis = 0, ...list }) => ({
        ...decodeListId(id),
        ...list,
        ...(list.stoppedBy !== undefined && stoppedMillis >= 0 && { stoppedMillis }),
      })),
      listCount,
    }),
    ...(instance.limitsOfGroups && {
      groups: itemsIn(groups ?? []).map(({ id, used }) => ({
        name: decodeListId(id).name,
        used: itemsIn(used),
      })),
    }),
    replicas: itemsIn(replicas),
  };
}

/** Some of the held approvals of a key. */
export interface PageOfHolds {
  /** Of the next page; undefined after the last one. */
  readonly next: string | undefined;
  readonly held: readonly HeldApproval[];
}

/** The cursor of the first page. */
export const FIRST_PAGE = '0';

/** The KEYS of `lua/holders.lua`. */
export function keysOfHolders({ state, records, lapses }: KeyNames): string[] {
  return [state, records, lapses];
}

export function decodeHolders(reply: unknown): PageOfHolds {
  const { next, held = [] } = JSON.parse(reply as string) as Partial<PageOfHolds>;
  return { next, held };
}

/** What `lua/status.lua` replies for a request. */
type StatusSaid =
  | { readonly status?: undefined }
  | {
      readonly status: 'waiting';
      readonly position: number;
      readonly microsToTurn: number;
      readonly stoppedBy?: string;
    }
  | Extract<RequestStatus, { readonly status: 'approved' }>;

/** @returns for each request, in their order, its status; undefined if it is unknown, or over */
export function decodeStatuses(reply: unknown): (RequestStatus | undefined)[] {
  return itemsIn(JSON.parse(reply as string) as SaidItems<StatusSaid>).map((said) => {
    if (said.status !== 'waiting') return said.status && said;
    const { status, position, microsToTurn, stoppedBy } = said;
    return { status, position, waitMillis: microsToTurn / 1000, stoppedBy };
  });
}

/** What `lua/peek.lua` replies. */
interface PeekSaid {
  readonly microsToRoom: number;
  readonly limits: string;
  readonly used: UsedOfLimits;
  readonly verdict: number;
  readonly microsToTurn: number;
  readonly groups?: UsedOfGroups;
}

const REASONS: ReadonlyMap<number, 'too_many_hits' | 'paused'> = new Map([
  [VERDICT.tooManyHits, 'too_many_hits'],
  [VERDICT.paused, 'paused'],
]);

/** @throws UnavailableError if the check could not be decided */
export function decodePeek(reply: unknown, list: QueueList | undefined): Peek {
  const { microsToRoom, limits, used, verdict, microsToTurn, groups } = JSON.parse(
    reply as string,
  ) as PeekSaid;
  if (verdict === VERDICT.keyFull) throw new UnavailableError('key_full');
  const quota = quotasIn(limits, used, groups, microsToRoom / 1000)(list);
  if (verdict === VERDICT.approved) return { outcome: 'approved', quota };
  const reason = REASONS.get(verdict) ?? 'limit_reached';
  return { outcome: 'denied', reason, quota, turnMillis: microsToTurn / 1000 };
}
