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
  /** The maxima that its checks ask for; undefined for the default. */
  readonly maxima: readonly (number | undefined)[];
}

/** @param args of EVALSHA or EVAL: the script, the number of keys, the keys, ARGV */
export function readRun(
  script: string,
  replica: string,
  now: number,
  args: readonly (string | number)[],
): ScriptRun {
  const own = args.slice(2 + Number(args[1]) + SHARED_ARGUMENTS).map(String);
  const tickets = new Map<string, number>();
  const run = { script, replica, now, maxima: [], tickets, lowestTicket: Infinity };
  if (script === 'check') return { ...run, ...readChecks(own, Number(args[1]) / KEYS_PER_KEY) };
  if (script === 'settle') {
    for (let i = 1; i < own.length; i += 2) tickets.set(own[i]!, Number(own[i + 1]));
    return {
      ...run,
      requestIds: [...tickets.keys()],
      lowestTicket: Math.min(...tickets.values()),
    };
  }
  return { ...run, requestIds: own };
}

function readChecks(
  own: readonly string[],
  batches: number,
): Pick<ScriptRun, 'requestIds' | 'maxima' | 'lowestTicket'> {
  const requestIds: string[] = [];
  const maxima: (number | undefined)[] = [];
  let lowestTicket = Infinity;
  let position = 1;
  for (let batch = 0; batch < batches; batch += 1) {
    maxima.push(own[position + 2] ? Number(own[position + 2]) : undefined);
    if (own[position + 4]) lowestTicket = Math.min(lowestTicket, Number(own[position + 4]));
    const size = Number(own[position + 6]);
    position += 7;
    for (let i = 0; i < size; i += 1, position += 2) requestIds.push(own[position]!);
  }
  return { requestIds, maxima, lowestTicket };
}
