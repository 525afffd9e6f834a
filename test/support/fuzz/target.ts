import { randomUUID } from 'node:crypto';

import type { Redis } from 'ioredis';

import { lastWithin } from '../chaos/within.js';
import type { DebugState } from '../debug-state.js';
import { send } from '../http-client.js';
import { parsePrometheusText } from '../prometheus-text.js';
import type { ReplicaProcess } from '../replica-process.js';
import type { Counts, KeyAccount } from './key-account.js';
import { type Declared } from './declared.js';

const SETTLING_MILLIS = 60_000;
/** A margin for timers and other short-lived handles. */
const SPARE_HANDLES = 5;

/** The fuzzed service, and an account of the requests to it. */
export interface Target {
  readonly replica: ReplicaProcess;
  readonly keys: KeyAccount;
  /** Its rules and tokens, if it has any. */
  readonly declared?: Declared | undefined;
  /** Its Redis, and the prefix of its names there. */
  readonly store?: { readonly redis: Redis; readonly prefix: string } | undefined;
}

/** Values that show whether the process is as before. */
export interface Vitals {
  readonly startedAt: number;
  readonly handles: number;
  readonly waiting: number;
}

export async function vitals(target: Target): Promise<Vitals> {
  const { text } = await ask(target, '/metrics');
  const scrape = parsePrometheusText(text);
  return {
    startedAt: scrape.value('process_start_time_seconds'),
    handles: scrape.value('nodejs_active_handles_total'),
    waiting: scrape.value('ratelimit_waiting'),
  };
}

export async function stateOf(target: Target, key: string): Promise<DebugState> {
  const { json } = await ask(target, `/debug/${encodeURIComponent(key)}`);
  return json() as DebugState;
}

export async function waitingFor(target: Target, key: string): Promise<number> {
  return (await stateOf(target, key)).NumWaiting ?? 0;
}

/** The flaws of the service after all requests have ended. */
export async function flawsAtTheEnd(target: Target, before: Vitals): Promise<string[]> {
  const flaws: string[] = [];
  const isQuiet = ({ handles, waiting }: Vitals): boolean =>
    waiting === 0 && handles <= before.handles + SPARE_HANDLES;
  const after = await lastWithin(SETTLING_MILLIS, () => vitals(target), isQuiet);
  if (!isQuiet(after)) flaws.push(`left over: ${JSON.stringify({ before, after })}`);
  if (after.startedAt !== before.startedAt) flaws.push('the process was restarted');

  const { replica, keys, store } = target;
  const existing = await existingKeys(target);
  await untilLogRead(target);
  flaws.push(...keys.flaws(existing, replica.log));
  if (store) flaws.push(...(await flawsOfNames(store, keys, existing)));
  if (replica.stderr !== '') flaws.push(`on stderr: ${replica.stderr}`);
  for (const line of replica.log) {
    if (line.level === 'error' || line.level === 'fatal') flaws.push(JSON.stringify(line));
  }
  const { status, text } = await ask(target, '/rate/after-all-that~open~');
  if (status !== 200) flaws.push(`in the end a check is answered ${status} ${text}`);
  return flaws;
}

/** Waits for log lines, which may arrive later than the answers. */
async function untilLogRead(target: Target): Promise<void> {
  const mark = randomUUID();
  await send(target.replica.url, 'GET', '/healthz', { 'X-Correlation-ID': mark });
  await target.replica.logged(({ correlationId }) => correlationId === mark);
}

async function existingKeys(target: Target): Promise<Map<string, Counts>> {
  const { json } = await ask(target, '/debug');
  const { Instances: instances } = json() as { Instances: Record<string, DebugState> };
  return new Map(
    Object.entries(instances).map(([key, state]) => [
      key,
      {
        approved: state.NumApprovedThisWindow ?? 0,
        held: state.NumHeld ?? 0,
        isFixed: state.Algorithm === undefined,
        limits: (state.Limits ?? []).map((limit) => ({
          name: limit.Name,
          approved: limit.NumApprovedThisWindow ?? 0,
          countsHolds: limit.MaxHitsPerWindow !== undefined,
        })),
      },
    ]),
  );
}

/**
 * Redis must have exactly the state of each key, its approvals if there are any, those of its further limits, and for some
 * keys the ids that were released or withdrawn, which are kept for a while. Limits that are no fixed windows keep some ids
 * for longer than they count, and of a reported key it is not known how much its approvals take. A mutated request may
 * take a short hold, which stays until the next script looks at its key.
 */
async function flawsOfNames(
  { redis, prefix }: NonNullable<Target['store']>,
  keys: Pick<KeyAccount, 'isReported'>,
  existing: ReadonlyMap<string, Counts>,
): Promise<string[]> {
  const stored = [...existing].map(([key, counts]) => ({
    state: `${prefix}{${key.replace(/[{}%]/g, encodeURIComponent)}}`,
    isReported: keys.isReported(key),
    ...counts,
  }));
  const expected = stored.flatMap(({ state, isReported, approved, held, isFixed, limits }) => [
    state,
    ...(held > 0 ? [`${state}:records`, `${state}:lapses`] : []),
    ...(isFixed && !isReported && approved > held ? [`${state}:requests`] : []),
    ...limits.flatMap((limit) =>
      !isReported && limit.approved > (limit.countsHolds ? held : 0)
        ? [`${state}:took:0:${limit.name}`]
        : [],
    ),
  ]);
  const remembered = new Set(
    stored.flatMap(({ state, isReported, held, isFixed, limits }) => [
      ...[1, 2, 3].map((turn) => `${state}:requests:${turn}`),
      // Only keys with further limits have approvals with several hits, besides those of a bucket.
      ...(limits.length > 0 ? [`${state}:took:0`] : []),
      ...(held > 0 ? [] : [`${state}:records`, `${state}:lapses`]),
      ...(isFixed && !isReported ? [] : [`${state}:requests`]),
      ...(isFixed ? [] : [`${state}:took:0`, `${state}:took:1`]),
      ...(isReported ? limits.map(({ name }) => `${state}:took:0:${name}`) : []),
    ]),
  );
  const isRight = (names: ReadonlySet<string>): boolean =>
    names.size === expected.length && expected.every((name) => names.has(name));
  const names = await lastWithin(
    SETTLING_MILLIS,
    async () => {
      const found = (await redis.keys('*')).filter((name) => name.includes(prefix));
      return new Set(found.filter((name) => !remembered.has(name)));
    },
    isRight,
  );
  if (isRight(names)) return [];
  const missing = expected.filter((name) => !names.has(name));
  const unexpected = [...names].filter((name) => !expected.includes(name));
  return [`in Redis: ${JSON.stringify({ missing, unexpected })}`];
}

function ask(target: Target, path: string): ReturnType<typeof send> {
  return send(target.replica.url, 'GET', path, mightyHeaders(target));
}

/** The headers of a caller that may do everything. */
export function mightyHeaders({ declared }: Pick<Target, 'declared'>): Record<string, string> {
  return declared ? { Authorization: `Bearer ${declared.callers[0].token[0]}` } : {};
}
