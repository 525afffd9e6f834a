import { createHash } from 'node:crypto';

import type { Redis } from 'ioredis';

import type { KeyNames } from '../../../src/redis/shared/key-names.js';
import { loadScript } from '../../../src/redis/scripts/script-loader.js';
import { keysOf } from '../../../src/redis/scripts/shared-arguments.js';
import { GROUPS, LIMIT_NAMES, LIMITS_OF_GROUPS } from './shape.js';
import { NO_LISTS } from './stored-lists.js';
import {
  NOTHING_STORED,
  type RawSnapshot,
  readSnapshot,
  type RecentId,
  sentMessages,
  type Snapshot,
  withTaken,
} from './snapshot.js';

const CLOCK = ':clock';
const SENT = ':sent';

/** What stands in for Redis's clock and for PUBLISH: keys of the world, beside the key of its state. */
const FRAGMENTS: Readonly<Record<string, string>> = {
  'lib/now': `local now = {}
function now.micros()
  local state_key = string.match(KEYS[1], '^[^}]*}')
  return tonumber(redis.call('GET', state_key .. '${CLOCK}'))
end
return now`,
  'lib/wake': `local wake = {}
function wake.publish(state_key, call, message)
  redis.call('RPUSH', state_key .. '${SENT}', message)
end
return wake`,
};

const SCRIPTS = [
  ...['check', 'settle', 'renew', 'release', 'amend', 'pause', 'remaining', 'refund'],
  ...['withdraw', 'confirm', 'status'],
];

/** The numbers in KEYS of the lapses of holds and of the ends of remembered requests. */
const [LAPSES, ENDS] = [9, 10];
/** The number of the first name of what approvals take: two generations of the own limit, and of each further one. */
const TOOK = 11;
/** The number of the heads of lanes; those of groups follow. */
const HEADS = TOOK + 2 * (1 + LIMIT_NAMES.length);
/** The numbers of what groups have to themselves, and of all after it: what approvals take of the limits of groups. */
export const OF_GROUPS = { stopped: HEADS + 2, all: HEADS + 3, idle: HEADS + 4, last: HEADS + 16 };

/**
 * The real scripts, with the fragments of a world, each put together once. They lack the call at the end, which is added
 * to each script that is loaded.
 * @param replacements texts of fragments, by their paths in lua
 */
export function simulatedScripts(
  replacements: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const fragments = { ...FRAGMENTS, ...replacements };
  return Object.fromEntries(
    SCRIPTS.map((name) => {
      const { text } = loadScript(name, fragments);
      return [name, text.replace(/return run\(KEYS, ARGV\)\n$/, '')];
    }),
  );
}

/** Removes what has expired by the controlled time, as Redis would; the reply is what that was. */
const BEGIN = script(`
redis.call('SET', KEYS[1] .. '${CLOCK}', ARGV[1])
local expired = {}
for i, name in ipairs(KEYS) do
  local at = redis.call('PEXPIRETIME', name)
  if at > 0 and at * 1000 <= tonumber(ARGV[1]) then
    redis.call('DEL', name)
    expired[#expired + 1] = i
  end
end
return expired`);

const SNAPSHOT = script(`
local expiry = {}
for i, name in ipairs(KEYS) do
  expiry[i] = redis.call('PEXPIRETIME', name)
end
local took = {}
for i = ${TOOK}, ${HEADS} - 1 do
  took[#took + 1] = redis.call('HGETALL', KEYS[i])
end
local function scores(i)
  return redis.call('ZRANGE', KEYS[i], 0, -1, 'WITHSCORES')
end
local heads = {}
for i = ${HEADS}, ${HEADS + 1} do
  for _, value in ipairs(scores(i)) do
    heads[#heads + 1] = value
  end
end
local has_lists = redis.call('TYPE', KEYS[3]).ok == 'zset'
local queue = redis.call(has_lists and 'ZRANGE' or 'LRANGE', KEYS[3], 0, -1)
local sent = redis.call('LRANGE', KEYS[1] .. '${SENT}', 0, -1)
redis.call('DEL', KEYS[1] .. '${SENT}')
return cjson.encode({
  state = redis.call('HGETALL', KEYS[1]), requests = redis.call('SMEMBERS', KEYS[2]),
  queue = queue, heads = heads, records = redis.call('HGETALL', KEYS[4]),
  replicas = redis.call('HGETALL', KEYS[5]), lapses = scores(${LAPSES}), ends = scores(${ENDS}),
  past = redis.call('SUNION', KEYS[6], KEYS[7], KEYS[8]), took = took, expiry = expiry, sent = sent,
  stopped = scores(${OF_GROUPS.stopped}), groups = redis.call('HGETALL', KEYS[${OF_GROUPS.all}]), idle = scores(${OF_GROUPS.idle})
})`);

/** What a command has done to the key. */
export interface Change {
  /** What the last command left. */
  readonly left: Snapshot;
  /** The same without what has expired since. */
  readonly before: Snapshot;
  readonly after: Snapshot;
  /** As they would have been published, in their order. */
  readonly messages: readonly string[];
}

/** The key of a world in a real Redis, looked at before and after each command. */
export class StoredKey {
  readonly #keys: readonly string[];
  #last = NOTHING_STORED;

  constructor(
    private readonly redis: Redis,
    names: KeyNames,
  ) {
    const limits = [undefined, ...LIMIT_NAMES];
    const took = limits.flatMap((name) => [names.took(0, name), names.took(1, name)]);
    const heads = [names.headsOf('lane'), names.headsOf('group')];
    const { state } = names;
    const tookOfGroups = LIMITS_OF_GROUPS.flatMap((name) =>
      GROUPS.flatMap((group) => [0, 1].map((i) => `${state}:took:${i}:${name}:group:${group}`)),
    );
    const ofGroups = [`${state}:heads:stopped`, `${state}:groups`, `${state}:groups:idle`];
    const all = [...keysOf(names), names.lapses, names.ends, ...took, ...heads];
    this.#keys = [...all, ...ofGroups, ...tookOfGroups];
  }

  /** What there was after the last command. */
  get last(): Snapshot {
    return this.#last;
  }

  /** Runs a command at this time. Returns Redis's reply, which may be an error, and what changed. */
  async run(
    nowMillis: number,
    command: readonly [string, ...(string | number)[]],
  ): Promise<{ readonly reply: unknown; readonly change: Change }> {
    const keys = this.#keys;
    const [name, ...args] = command;
    const replies = await this.redis
      .pipeline()
      .call('evalsha', BEGIN.sha1, keys.length, ...keys, String(nowMillis * 1000))
      .call(name, ...args)
      .call('evalsha', SNAPSHOT.sha1, keys.length, ...keys)
      .exec();
    const [begun, ran, seen] = replies!;
    const failure = begun![0] ?? seen![0];
    if (failure) throw failure;
    const left = this.#last;
    const before = withoutExpired(left, begun![1] as number[]);
    const raw = JSON.parse(seen![1] as string) as RawSnapshot;
    this.#last = readSnapshot(raw);
    const change = { left, before, after: this.#last, messages: sentMessages(raw) };
    return { reply: ran![0] ?? ran![1], change };
  }

  /** Redis loses keys of these numbers, in the order of KEYS from 1 on. */
  async lose(nowMillis: number, positions: readonly number[]): Promise<void> {
    await this.run(nowMillis, ['del', ...positions.map((position) => this.#keys[position - 1]!)]);
  }

  /** Removes everything of the world. */
  async remove(): Promise<void> {
    await this.redis.del(...this.#keys, `${this.#keys[0]!}${CLOCK}`, `${this.#keys[0]!}${SENT}`);
  }
}

/** To be called once for each Redis, before any {@link StoredKey} is used. */
export async function loadHelpers(redis: Redis): Promise<void> {
  await redis.script('LOAD', BEGIN.text);
  await redis.script('LOAD', SNAPSHOT.text);
}

function withoutExpired(snapshot: Snapshot, expired: readonly number[]): Snapshot {
  if (expired.length === 0) return snapshot;
  const [state, requests, queue, records, replicas, lapses, ends] = [
    ...[1, 2, 3, 4, 5],
    ...[LAPSES, ENDS],
  ].map((n) => expired.includes(n));
  const hasNoQueue = queue! || records! || replicas!;
  const { stopped, all, idle } = OF_GROUPS;
  const recent = snapshot.recent.map((ids, i) =>
    expired.includes(TOOK + i) ? new Map<string, RecentId>() : ids,
  );
  return withTaken(
    {
      ...snapshot,
      ...(state && { state: undefined }),
      ...(requests && { requests: new Map() }),
      ...(records && { records: new Map() }),
      ...((state! || records! || lapses!) && { holds: new Map() }),
      ...(lapses && { lapses: new Map() }),
      ...(ends && { ends: new Map() }),
      ...(expired.includes(stopped) && { lists: { ...snapshot.lists, stopped: new Map() } }),
      ...((state! || hasNoQueue) && { lists: NO_LISTS }),
      ...(expired.includes(all) && { groups: new Map() }),
      ...(expired.includes(idle) && { idleGroups: new Set() }),
      ...(hasNoQueue && { waiting: new Map(), leases: {} }),
    },
    recent,
  );
}

function script(text: string): { readonly text: string; readonly sha1: string } {
  return { text, sha1: createHash('sha1').update(text).digest('hex') };
}
