import { KEYS_PER_KEY } from './stored-key.js';

const SHARED_ARGUMENTS = 7;

/** A script call as it arrives at Redis. */
export interface ScriptRun {
  readonly script: string;
  readonly replica: string;
  readonly now: number;
  /** Those it is about, in its order. */
  readonly requestIds: readonly string[];
  /** Of those a settle call asks about. */
  readonly tickets: ReadonlyMap<string, number>;
  /** The lowest ticket of those who wait at the caller, as far as it says. */
  readonly lowestTicket: number;
  /** What its caller goes by. */
  readonly limits: { readonly max: number; readonly queueMax: number };
  /** Those of a check call. */
  readonly batches: readonly CheckBatchRun[];
}

/** What one batch of checks says of limits. */
export interface CheckBatchRun {
  readonly overrides: Partial<ScriptRun['limits']>;
  /** Infinite where all overrides count. */
  readonly ceilings: ScriptRun['limits'];
}

/** @param args of EVALSHA or EVAL: the script, the number of keys, the keys, ARGV */
export function readRun(
  script: string,
  replica: string,
  now: number,
  args: readonly (string | number)[],
): ScriptRun {
  const [shared, own] = splitAt(args.slice(2 + Number(args[1])).map(String), SHARED_ARGUMENTS);
  const limits = { max: Number(shared[3]), queueMax: Number(shared[4]) };
  const tickets = new Map<string, number>();
  const run = { script, replica, now, limits, batches: [], tickets, lowestTicket: Infinity };
  if (script === 'check') return { ...run, ...readChecks(own, Number(args[1]) / KEYS_PER_KEY) };
  if (script === 'settle') {
    for (let i = 1; i < own.length; i += 2) tickets.set(own[i]!, Number(own[i + 1]));
    return {
      ...run,
      requestIds: [...tickets.keys()],
      lowestTicket: Math.min(...tickets.values()),
    };
  }
  return { ...run, requestIds: script === 'renew' ? [] : own };
}

function readChecks(
  own: readonly string[],
  count: number,
): Pick<ScriptRun, 'requestIds' | 'batches' | 'lowestTicket'> {
  const requestIds: string[] = [];
  const batches: CheckBatchRun[] = [];
  let lowestTicket = Infinity;
  let position = 1;
  for (let batch = 0; batch < count; batch += 1) {
    const [, ceilings = '', max, queueMax] = own.slice(position);
    const [maxCeiling = Infinity, queueCeiling = Infinity] = ceilings
      ? ceilings.split(':').map(Number)
      : [];
    batches.push({
      overrides: {
        ...(max && { max: Number(max) }),
        ...(queueMax && { queueMax: Number(queueMax) }),
      },
      ceilings: { max: maxCeiling, queueMax: queueCeiling },
    });
    if (own[position + 4]) lowestTicket = Math.min(lowestTicket, Number(own[position + 4]));
    const size = Number(own[position + 6]);
    position += 7;
    for (let i = 0; i < size; i += 1, position += 2) requestIds.push(own[position]!);
  }
  return { requestIds, batches, lowestTicket };
}

function splitAt<Item>(items: readonly Item[], index: number): [readonly Item[], readonly Item[]] {
  return [items.slice(0, index), items.slice(index)];
}
