import { type FurtherLimit, furtherIn } from '../further-limits.js';
import { readStoredLimits } from '../stored-state.js';

const SHARED_ARGUMENTS = 6;

/** Those that requests can set. */
interface OverriddenLimits {
  readonly window: number;
  readonly max: number;
  readonly queueMax: number;
}

/** A script call as it arrives at Redis. */
export interface ScriptRun {
  readonly script: string;
  readonly replica: string;
  readonly now: number;
  /** Of an amendment: the hits and the length of the hold from now on; undefined if they stay. */
  readonly hits: number | undefined;
  readonly holdMillis: number | undefined;
  /** Of a pause: its length; 0 ends it. */
  readonly pauseMillis: number | undefined;
  /** Those it is about, in its order. */
  readonly requestIds: readonly string[];
  /** The tickets of the waiters that a settle call asks about. */
  readonly tickets: ReadonlyMap<string, number>;
  /** The lowest ticket of the caller's waiters, as far as it says. */
  readonly lowestTicket: number;
  /** The maximum that a request had set before Redis lost the key, as far as the caller says. */
  readonly knownMaximum: number | undefined;
  /** What its caller goes by. */
  readonly limits: OverriddenLimits & { readonly further: readonly FurtherLimit[] };
  /** When its caller loaded its rules. */
  readonly rulesLoadedAt: number;
  /** Those of a check call. */
  readonly batches: readonly CheckBatchRun[];
}

/** What one batch of checks says of limits. */
export interface CheckBatchRun {
  readonly overrides: Partial<OverriddenLimits>;
  /** Infinite where all overrides count. */
  readonly ceilings: OverriddenLimits;
}

/** @param args of EVALSHA or EVAL: the script, the number of keys, the keys, ARGV */
export function readRun(
  script: string,
  replica: string,
  now: number,
  args: readonly (string | number)[],
): ScriptRun {
  const [shared, own] = splitAt(args.slice(2 + Number(args[1])).map(String), SHARED_ARGUMENTS);
  const { window, max, queueMax } = readStoredLimits(shared[2]!)!;
  const limits = { window, max, queueMax, further: furtherIn(shared[2]!) };
  const tickets = new Map<string, number>();
  const rulesLoadedAt = Number(shared[5]!.split(':')[0]);
  const run = {
    rulesLoadedAt,
    script,
    replica,
    now,
    limits,
    batches: [],
    tickets,
    lowestTicket: Infinity,
    knownMaximum: undefined,
    hits: undefined,
    holdMillis: undefined,
    pauseMillis: undefined,
  };
  if (script === 'check') return { ...run, ...readChecks(own) };
  if (script === 'settle') {
    for (let i = 2; i < own.length; i += 2) tickets.set(own[i]!, parseInt(own[i + 1]!, 10));
    return {
      ...run,
      requestIds: [...tickets.keys()],
      lowestTicket: Math.min(...tickets.values()),
      knownMaximum: overriddenMaximumIn(own[1]),
    };
  }
  if (script === 'release') return { ...run, requestIds: own.slice(0, 1) };
  if (script === 'amend') {
    const [requestId = '', hits = '', holdMillis = ''] = own;
    return {
      ...run,
      requestIds: [requestId],
      hits: hits === '' ? undefined : Number(hits),
      holdMillis: holdMillis === '' ? undefined : Number(holdMillis),
    };
  }
  if (script === 'pause') return { ...run, requestIds: [], pauseMillis: Number(own[0]) };
  // Of the one key of a world, after how many there are.
  return { ...run, requestIds: script === 'withdraw' ? own.slice(1) : [] };
}

function readChecks(
  own: readonly string[],
): Pick<ScriptRun, 'requestIds' | 'batches' | 'lowestTicket' | 'knownMaximum'> {
  const [, , , shapes = '', ...requestIds] = own;
  const tickets: number[] = [];
  let knownMaximum: number | undefined;
  const batches = (shapes === '' ? requestIds.map(() => '1') : shapes.split(' ')).map((shape) => {
    const [, special = ''] = shape.split('/');
    const { ceilings, max, queue_max, window, ticket, known_limits } = namedValuesIn(special);
    knownMaximum ??= overriddenMaximumIn(known_limits);
    const [maxCeiling = Infinity, queueCeiling = Infinity, windowCeiling = Infinity] = ceilings
      ? ceilings.split(':').map(Number)
      : [];
    if (ticket) tickets.push(Number(ticket));
    return {
      overrides: {
        ...(max && { max: Number(max) }),
        ...(queue_max && { queueMax: Number(queue_max) }),
        ...(window && { window: Number(window) }),
      },
      ceilings: { max: maxCeiling, queueMax: queueCeiling, window: windowCeiling },
    };
  });
  return { requestIds, batches, lowestTicket: Math.min(...tickets), knownMaximum };
}

/** The maximum in limits as Redis writes them, if a request has set it. */
function overriddenMaximumIn(limits: string | undefined): number | undefined {
  const maximum = /^\d+\*?:(\d+)\*/.exec(limits ?? '')?.[1];
  return maximum === undefined ? undefined : Number(maximum);
}

/** What a text of `<name>=<value>;` says. */
function namedValuesIn(text: string): Readonly<Partial<Record<string, string>>> {
  return Object.fromEntries(
    text
      .split(';')
      .filter((pair) => pair !== '')
      .map((pair) => pair.split('=') as [string, string]),
  );
}

function splitAt<Item>(items: readonly Item[], index: number): [readonly Item[], readonly Item[]] {
  return [items.slice(0, index), items.slice(index)];
}
