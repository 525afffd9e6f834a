import { type Claimed as ClaimSaid, claimOf } from '../../../src/limiter/request.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { KeyLimits, Overrides } from '../../../src/limiter/limiter.js';
import type { KnownWaiting } from '../../../src/redis/scripts/check-codec.js';
import { limitsIn } from '../../../src/redis/scripts/limits-codec.js';
import type { AskedRequest } from '../../../src/redis/scripts/requests-codec.js';
import type { KnownWindow } from '../../../src/redis/scripts/settle-codec.js';
import { calendarsSaidIn, KnownCalendar, textOfCalendar } from '../known-calendar.js';
import { rulesIn } from '../rules-in.js';

const SHARED_ARGUMENTS = 6;
const NO_CEILINGS = {
  maxRequests: Infinity,
  maxRequestsInQueue: Infinity,
  windowMillis: Infinity,
};

/** What a check asks for. */
export interface CheckRun {
  readonly id: string;
  readonly hits: number;
  readonly holdMillis: number | undefined;
  /** For how long its place is kept for its caller; undefined if it ends with the check. */
  readonly keepMillis: number | undefined;
  readonly canWait: boolean;
  readonly noPlace: boolean;
  readonly maxWaitMillis: number;
  /** Undefined without a lane or a group. */
  readonly list: QueueList | undefined;
  /** `<replica>#<number>`; undefined if its caller has not chosen the id. */
  readonly owner: string | undefined;
}

/** A batch of checks. */
export interface CheckBatchRun {
  /** The limits and ceilings by the rules of its caller. */
  readonly rules: KeyLimits;
  /** Those that requests have set. */
  readonly overrides: {
    readonly maxRequests: number | undefined;
    readonly maxRequestsInQueue: number | undefined;
    readonly windowMillis: number | undefined;
  };
  /** How many groups the key may have, as far as the caller says. */
  readonly maxGroups: number | undefined;
  readonly checks: readonly CheckRun[];
}

/** A request, and its check, `<replica>#<number>`, if its caller has chosen the id. */
export interface Claimed {
  readonly id: string;
  readonly owner: string | undefined;
}

/** A waiter that a settle call asks about. */
export interface WaiterRun extends Claimed {
  readonly ticket: number;
  readonly hits: number;
  readonly holdMillis: number | undefined;
  readonly keepMillis: number | undefined;
  readonly list: QueueList | undefined;
}

/** A script call as it arrives at Redis. */
export interface ScriptRun {
  readonly script: string;
  readonly replica: string;
  readonly now: number;
  /** What its caller goes by. */
  readonly rules: KeyLimits;
  /** When its caller loaded its rules. */
  readonly rulesLoadedAt: number;
  /** Those it is about, in its order. */
  readonly requestIds: readonly string[];
  /** The lowest ticket of the caller's waiters, as far as it says. */
  readonly lowestTicket: number;
  /** The maximum that a request had set before Redis lost the key, as far as the caller says. */
  readonly knownMaximum: number | undefined;
  /** In how many milliseconds there was room before Redis lost the key, as far as the caller says. */
  readonly knownMillisToRoom: number | undefined;
  /** Of a check: it may have run before. */
  readonly isSentAgain: boolean;
  /** Those of a check. */
  readonly batches: readonly CheckBatchRun[];
  /** Those of a settle, by their claims on the replica. */
  readonly waiters: ReadonlyMap<string, WaiterRun>;
  /** Those of a withdrawal. */
  readonly withdrawals: readonly Claimed[];
  /** Those of a confirmation. */
  readonly confirmations: readonly Claimed[];
  /** What a script says that has no others: of a release, an amendment, a pause or a report. */
  readonly own: readonly string[];
}

/** @param args of EVALSHA or EVAL: the script, the number of keys, the keys, ARGV */
export function readRun(
  script: string,
  replica: string,
  now: number,
  args: readonly (string | number)[],
): ScriptRun {
  const values = args.slice(2 + Number(args[1])).map(String);
  const own = values.slice(SHARED_ARGUMENTS);
  const rules = rulesSaidIn(values[2]!);
  const run = {
    ...{ script, replica, now, rules, own },
    rulesLoadedAt: Number(values[5]!.split(':')[0]),
    requestIds: [],
    lowestTicket: Infinity,
    knownMaximum: undefined,
    knownMillisToRoom: undefined,
    isSentAgain: false,
    batches: [],
    waiters: new Map(),
    withdrawals: [],
    confirmations: [],
  };
  if (script === 'check') return { ...run, ...readChecks(replica, own, rules) };
  if (script === 'settle') return { ...run, ...readSettle(replica, own) };
  if (script === 'release' || script === 'amend') return { ...run, requestIds: own.slice(0, 1) };
  if (script !== 'withdraw' && script !== 'confirm') return run;
  // Of the one key of a world.
  const [{ requests }] = JSON.parse(own[0]!) as [{ requests: ClaimSaid[] }];
  const claims = requests.map(({ requestId, number }) => ({
    id: requestId,
    owner: ownerOf(replica, number),
  }));
  const requestIds = [...new Set(claims.map(({ id }) => id))];
  return script === 'withdraw'
    ? { ...run, withdrawals: claims, requestIds }
    : { ...run, confirmations: claims, requestIds };
}

function ownerOf(replica: string, number: number | undefined): string | undefined {
  return number === undefined ? undefined : `${replica}#${number}`;
}

/** The rules of a caller, whose calendars have the windows that it says. */
function rulesSaidIn(text: string): KeyLimits {
  const said = calendarsSaidIn(text);
  return rulesIn(text, (name, { windowMillis }) => {
    return new KnownCalendar(name, windowMillis, undefined, said.get(textOfCalendar(name)));
  });
}

/** A request as a call says it. */
type SaidRequest = Partial<AskedRequest> & { readonly number?: number };

interface SaidOfSettle extends KnownWindow {
  readonly waiters: readonly (SaidRequest & {
    readonly requestId: string;
    readonly ticket: string;
  })[];
}

function readSettle(replica: string, [text = '']: readonly string[]): Partial<ScriptRun> {
  const { millisLeft, limits, waiters: asked } = JSON.parse(text) as SaidOfSettle;
  const waiters = new Map<string, WaiterRun>();
  for (const { requestId: id, ticket, number, list, hits = 1, holdMillis, keepMillis } of asked) {
    const owner = ownerOf(replica, number);
    const terms = { hits, holdMillis, keepMillis, list: listSaid(list) };
    waiters.set(claimOf(id, number) ?? id, { id, owner, ticket: Number(ticket), ...terms });
  }
  return {
    waiters,
    requestIds: [...new Set([...waiters.values()].map(({ id }) => id))],
    lowestTicket: Math.min(...[...waiters.values()].map(({ ticket }) => ticket)),
    knownMaximum: overriddenMaximumIn(limits),
    knownMillisToRoom: millisLeft,
  };
}

/** What a batch of checks says. */
interface SaidOfBatch extends Partial<Overrides> {
  readonly ceilings?: KeyLimits['ceilings'];
  readonly waiting?: KnownWaiting;
  readonly requests?: SaidRequest | readonly SaidRequest[];
  readonly maxGroups?: number;
}

function readChecks(
  replica: string,
  [flags, , , shapes = '', ...ofBatches]: readonly string[],
  ofCall: KeyLimits,
): Partial<ScriptRun> {
  const texts = shapes === '' ? ofBatches.map(() => '1') : shapes.split(' ');
  const requestIds: string[] = [];
  let lowestTicket = Infinity;
  let knownMaximum: number | undefined;
  let knownMillisToRoom: number | undefined;
  let first = 0;
  const batches = texts.map((text) => {
    const [, size, limits, mark] = /^(\d+)=?([^/]*)(\/?)$/.exec(text) ?? [];
    const said = (mark === '/' ? JSON.parse(ofBatches[first++]!) : {}) as SaidOfBatch;
    const { ceilings = NO_CEILINGS, waiting, requests = {}, maxGroups } = said;
    const ids = ofBatches.slice(first, first + Number(size));
    first += Number(size);
    requestIds.push(...ids);
    lowestTicket = Math.min(lowestTicket, waiting?.lowestTicket ?? Infinity);
    knownMaximum ??= overriddenMaximumIn(waiting?.limits);
    knownMillisToRoom ??= waiting?.millisToWindowEnd;
    const { maxRequests, maxRequestsInQueue, windowMillis } = said;
    return {
      rules: { ...(limits ? rulesSaidIn(limits) : ofCall), ceilings },
      overrides: { maxRequests, maxRequestsInQueue, windowMillis },
      maxGroups,
      checks: ids.map((id, i) =>
        readCheck(replica, id, isList(requests) ? requests[i]! : requests),
      ),
    };
  });
  const isSentAgain = Number(flags) % 2 === 1;
  const known = { lowestTicket, knownMaximum, knownMillisToRoom };
  return { requestIds, batches, ...known, isSentAgain };
}

function readCheck(replica: string, id: string, said: SaidRequest): CheckRun {
  const { hits = 1, holdMillis, keepMillis, canWait = false, noPlace = false, number } = said;
  return {
    ...{ id, hits, holdMillis, keepMillis, canWait, noPlace, list: listSaid(said.list) },
    maxWaitMillis: said.maxWaitMillis ?? Infinity,
    owner: ownerOf(replica, number),
  };
}

function isList<Item>(value: object | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}

function listSaid(list: QueueList | undefined): QueueList | undefined {
  return list && { ...list, name: decodeURIComponent(list.name) };
}

/** The maximum in limits as Redis writes them, if a request has set it. */
function overriddenMaximumIn(limits: string | undefined): number | undefined {
  if (!limits) return undefined;
  const known = limitsIn(limits);
  return known.overridden.maxRequests ? known.limits[0].maximum : undefined;
}
