import { claimOf, parseClaim } from '../../../src/limiter/claims.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { KeyLimits } from '../../../src/limiter/limiter.js';
import { limitsIn } from '../../../src/redis/scripts/limits-codec.js';
import { calendarsSaidIn, KnownCalendar, textOfCalendar } from '../known-calendar.js';
import { rulesIn } from '../rules-in.js';
import { listOf } from '../stored-queue.js';

const SHARED_ARGUMENTS = 6;
const NO_CEILING = Infinity;

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
  // Of the one key of a world, after how many there are.
  const claims = own.slice(1).map((claim) => readClaim(replica, claim));
  const requestIds = [...new Set(claims.map(({ id }) => id))];
  return script === 'withdraw'
    ? { ...run, withdrawals: claims, requestIds }
    : { ...run, confirmations: claims, requestIds };
}

function readClaim(replica: string, claim: string): Claimed {
  const { requestId, number } = parseClaim(claim);
  return { id: requestId, owner: ownerOf(replica, number) };
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

function readSettle(
  replica: string,
  [millisToRoom, knownLimits, ...asked]: readonly string[],
): Partial<ScriptRun> {
  const waiters = new Map<string, WaiterRun>();
  for (let i = 0; i < asked.length; i += 2) {
    const id = asked[i]!;
    const [, ticket, hits, hold, keep, number, list] =
      /^(\d+)(?:\*(\d+))?(?:~(\d+))?(?:\+(\d+))?(?:\^\d+)?(?:#(\d+))?(?:\|(.*))?$/.exec(
        asked[i + 1]!,
      ) ?? [];
    const owner = ownerOf(replica, numberIn(number));
    waiters.set(claimOf(id, numberIn(number)) ?? id, {
      ...{ id, owner, ticket: Number(ticket), list: listIn(list) },
      ...{ hits: numberIn(hits) ?? 1, holdMillis: numberIn(hold), keepMillis: numberIn(keep) },
    });
  }
  return {
    waiters,
    requestIds: [...new Set([...waiters.values()].map(({ id }) => id))],
    lowestTicket: Math.min(...[...waiters.values()].map(({ ticket }) => ticket)),
    knownMaximum: overriddenMaximumIn(knownLimits),
    knownMillisToRoom: numberIn(millisToRoom),
  };
}

function readChecks(
  replica: string,
  [flags, , , shapes = '', ...requestIds]: readonly string[],
  ofCall: KeyLimits,
): Partial<ScriptRun> {
  const texts = shapes === '' ? requestIds.map(() => '1') : shapes.split(' ');
  let lowestTicket = Infinity;
  let knownMaximum: number | undefined;
  let knownMillisToRoom: number | undefined;
  let first = 0;
  const batches = texts.map((text) => {
    const [, size, limits, special = ''] = /^(\d+)=?([^/]*)\/?(.*)$/.exec(text) ?? [];
    const said = namedValuesIn(special);
    const ids = requestIds.slice(first, first + Number(size));
    first += Number(size);
    lowestTicket = Math.min(lowestTicket, Number(said.ticket ?? Infinity));
    knownMaximum ??= overriddenMaximumIn(said.known_limits);
    knownMillisToRoom ??= numberIn(said.millis_left);
    return {
      rules: { ...(limits ? rulesSaidIn(limits) : ofCall), ceilings: ceilingsIn(said.ceilings) },
      overrides: {
        maxRequests: numberIn(said.max),
        maxRequestsInQueue: numberIn(said.queue_max),
        windowMillis: numberIn(said.window),
      },
      checks: ids.map((id, i) => readCheck(replica, id, i, said)),
    };
  });
  const isSentAgain = Number(flags) % 2 === 1;
  const known = { lowestTicket, knownMaximum, knownMillisToRoom };
  return { requestIds, batches, ...known, isSentAgain };
}

function readCheck(replica: string, id: string, i: number, said: NamedValues): CheckRun {
  const waits = said.waits?.[i] ?? '0';
  return {
    id,
    hits: numberIn(said.hits?.split(',')[i]) ?? 1,
    holdMillis: numberIn(said.holds?.split(',')[i]),
    keepMillis: numberIn(said.keeps?.split(',')[i]),
    canWait: waits !== '0',
    noPlace: waits === '2',
    maxWaitMillis: numberIn(said.longest_waits?.split(',')[i]) ?? Infinity,
    list: listIn(said.lists?.split(',')[i]),
    owner: ownerOf(replica, numberIn(said.numbers?.split(',')[i])),
  };
}

/** A lane or a group as `encodeList` writes it; undefined for ''. */
export function listIn(text = ''): QueueList | undefined {
  const [, id = '', parameter, most] = /^([a-z]+:[^:]*):(\d+):?(\d*)$/.exec(text) ?? [];
  return parameter === undefined ? undefined : listOf(id, Number(parameter), numberIn(most));
}

function ceilingsIn(text: string | undefined): KeyLimits['ceilings'] {
  const [maxRequests = NO_CEILING, maxRequestsInQueue = NO_CEILING, windowMillis = NO_CEILING] =
    text?.split(':').map(Number) ?? [];
  return { maxRequests, maxRequestsInQueue, windowMillis };
}

/** The maximum in limits as Redis writes them, if a request has set it. */
function overriddenMaximumIn(limits: string | undefined): number | undefined {
  if (!limits) return undefined;
  const known = limitsIn(limits);
  return known.overridden.maxRequests ? known.limits[0].maximum : undefined;
}

function numberIn(text: string | undefined): number | undefined {
  return text === undefined || text === '' ? undefined : Number(text);
}

type NamedValues = Readonly<Partial<Record<string, string>>>;

/** What a text of `<name>=<value>;` says. */
function namedValuesIn(text: string): NamedValues {
  return Object.fromEntries(
    text
      .split(';')
      .filter((pair) => pair !== '')
      .map((pair) => pair.split('=') as [string, string]),
  );
}
