import { checkMany } from '../../bulk-client.js';
import { type Answer, approve, ratePath, send } from '../../http-client.js';
import type { RedisProcess } from '../../redis-process.js';
import { usedMemoryIn } from '../../while-full.js';
import { lastWithin } from '../within.js';
import type { Affected, Fault, FaultParts } from './faults.js';
import { MOST_ELEMENTS } from './requests.js';

/** Beside it, the buffers of connections are small. */
const BALLAST_BYTES = 30_000_000;
/** How much Redis has when it is full. */
const TIMES_MAXMEMORY = 1.02;
/** Up to this, checks of existing keys are approved: docs/reliability.md. */
const MOST_TIMES_MAXMEMORY = 1.1;
/** For the buffers of connections, which come and go. */
const MARGIN_BYTES = 6_000_000;
/** Bulk requests that are all approved would take Redis far above its bound. */
const MOST_REQUESTS = 400;
const KEYS = Array.from({ length: 20 }, (_, i) => `full-${i}`);
const [DENIED, RELEASED, HELD] = ['full-denied', 'full-released', 'full-held'];
const MANY = 'maxRequests=1000000';
const STORE_FULL = 'store full';
const ANSWERED_WITHIN_MILLIS = 5000;

/** The primaries have no memory left, while existing keys are checked in bulk. */
export const fullStore = ({ store }: FaultParts): Fault => {
  let approvals: string[] = [];
  let held = '';
  return {
    prepare: async ({ replica: { url } }) => {
      for (const key of KEYS) await approve(url, key, `?${MANY}`);
      await approve(url, DENIED, '?maxRequests=1');
      approvals = await Promise.all(KEYS.map(() => approve(url, RELEASED, `?${MANY}`)));
      held = await approve(url, HELD, '?holdMillis=3600000');
    },
    happen: async (affected) => {
      const primaries = await store.primaries();
      const bounds = await Promise.all(primaries.map(fill));
      try {
        if (!(await approveUntilFull(affected, primaries, bounds))) return;
        for (const [i, id] of approvals.entries()) {
          await expectAnswer(affected, 503, 'POST', ratePath(`full-new-${i}`));
          await expectAnswer(affected, 429, 'POST', ratePath(DENIED));
          await expectAnswer(affected, 200, 'PUT', `${ratePath(HELD)}/${held}`);
          await expectAnswer(affected, 200, 'DELETE', `${ratePath(RELEASED)}/${id}`);
        }
      } finally {
        await Promise.all(primaries.map(empty));
      }
    },
  };
};

/** Asks again if a busy machine makes Redis late. */
async function expectAnswer(
  { replica, violated }: Affected,
  expected: number,
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
): Promise<void> {
  const isExpected = ({ status, text }: Answer): boolean =>
    status === expected && (status !== 503 || text.includes(STORE_FULL));
  const ask = (): Promise<Answer> => send(replica.url, method, path);
  const answer = await lastWithin(ANSWERED_WITHIN_MILLIS, ask, isExpected);
  if (isExpected(answer)) return;
  violated(`while Redis is full, ${method} ${path} is answered ${answer.status} ${answer.text}`);
}

/** @returns the most memory that it may use */
async function fill(server: RedisProcess): Promise<number> {
  await server.command('SETRANGE', await ballastOf(server), BALLAST_BYTES, '0');
  const maxmemory = Math.floor((await usedMemory(server)) / TIMES_MAXMEMORY);
  await server.command('CONFIG', 'SET', 'maxmemory', maxmemory);
  return maxmemory * MOST_TIMES_MAXMEMORY + MARGIN_BYTES;
}

/** Removes also the keys that the clients of the load do not know. */
async function empty(server: RedisProcess): Promise<void> {
  await server.command('CONFIG', 'SET', 'maxmemory', 0);
  const names = (await server.command('KEYS', 'sluice:{full-*')) as string[];
  for (const name of [...names, await ballastOf(server)]) await server.command('DEL', name);
}

/** A name whose slot the server has. */
async function ballastOf(server: RedisProcess): Promise<string> {
  for (let i = 0; ; i += 1) {
    const name = `ballast-${i}`;
    try {
      await server.command('STRLEN', name);
      return name;
    } catch (error) {
      if (!String(error).includes('MOVED')) throw error;
    }
  }
}

/** @returns whether existing keys are approved no longer, and Redis is not above its bounds */
async function approveUntilFull(
  { replica, violated }: Affected,
  primaries: readonly RedisProcess[],
  bounds: readonly number[],
): Promise<boolean> {
  const elements = Array.from({ length: MOST_ELEMENTS }, (_, i) => ({
    key: KEYS[i % KEYS.length]!,
  }));
  for (let request = 0; request < MOST_REQUESTS; request += 1) {
    const results = await checkMany(replica.url, elements);
    for (const [i, primary] of primaries.entries()) {
      const used = await usedMemory(primary);
      if (used <= bounds[i]!) continue;
      violated(`a full Redis takes ${used} bytes, not ${Math.floor(bounds[i]!)}`);
      return false;
    }
    if (results.every((result) => 'error' in result && result.error.includes(STORE_FULL))) {
      return true;
    }
  }
  violated('existing keys are approved, however full Redis is');
  return false;
}

/** Without the buffers that Redis does not count. */
async function usedMemory(server: RedisProcess): Promise<number> {
  const info = (await server.command('INFO', 'memory')) as string;
  return usedMemoryIn(info) - Number(/^mem_not_counted_for_evict:(\d+)/m.exec(info)?.[1]);
}
