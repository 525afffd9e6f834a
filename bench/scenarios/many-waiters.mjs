// Ten thousand waiters of one key on one replica: the memory that each takes, the order in which they
// are served, and the effect on checks of other keys.
import { setTimeout as delay } from 'node:timers/promises';

import { hold, saturate } from '../lib/load.mjs';
import { Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const WAITERS = 10_000;
const SERVED_PER_WINDOW = 1000;
const KEY = 'crowd';
const OTHERS = { name: 'other', keys: 1, seconds: 2 };

export async function manyWaiters({ redis, rounds }) {
  const environment = {
    REDIS_URL: redis.url,
    MAX_REQUESTS: '1000000000',
    MAX_REQUESTS_IN_QUEUE: String(WAITERS),
  };
  // The other replica holds no waiters: what else happens on the machine affects both alike.
  const replica = await Server.start('sluice', SLUICE, environment);
  const other = await Server.start('sluice without waiters', SLUICE, environment);
  for (const server of [replica, other]) {
    progress(`many waiters: warm-up of ${server.name}`);
    await saturate(server, OTHERS);
    await saturate(server, OTHERS);
    await hold(server, 100, '/rate/warm-up');
  }
  const bytesWithout = await replica.residentBytes();

  // One waiter a window is approved until the others have come, so few are served before all wait.
  await hold(other, 1, `/rate/${KEY}?maxRequests=1`);
  progress(`many waiters: ${WAITERS} come to wait`);
  const held = hold(replica, WAITERS, `/rate/${KEY}?canWait=true`);
  await untilAllHaveCome(redis);
  const bytesWith = await replica.residentBytes();
  const waiting = await redis.client.hlen(`sluice:{${KEY}}:records`);
  const whileHeld = await rates(replica, other, rounds, 'while they wait');

  const queue = await idsInQueue(redis);
  const raised = fetch(`${other.url}/rate/${KEY}?maxRequests=${SERVED_PER_WINDOW}`, {
    method: 'POST',
  });
  // Ten windows of a second: two rounds on each of the two.
  const whileServed = await rates(replica, other, 2, 'while they are served');
  const answers = await held;
  await raised;
  await Promise.all([replica.stop(), other.stop()]);
  return {
    waiters: WAITERS,
    bytesPerWaiter: (bytesWith - bytesWithout) / waiting,
    whileHeld: describe(whileHeld),
    whileServed: describe(whileServed),
    servedInOrder: isInOrder(
      queue,
      answers.map(({ requestId }) => requestId),
    ),
  };
}

const describe = ({ beside, without }) => ({
  besideWaiters: summary(beside),
  withoutWaiters: summary(without),
  toWithout: ratio(beside, without),
});

async function rates(replica, other, rounds, when) {
  const beside = [];
  const without = [];
  for (let round = 0; round < rounds; round += 1) {
    progress(`many waiters: other keys ${when}, round ${round + 1} of ${rounds}`);
    beside.push((await saturate(replica, OTHERS)).perSecond);
    without.push((await saturate(other, OTHERS)).perSecond);
  }
  return { beside, without };
}

/** All waiters but those that were served while others still came. */
async function untilAllHaveCome(redis) {
  let before = -1;
  let waiting = 0;
  while (waiting < WAITERS - 100 || waiting > before) {
    await delay(500);
    before = waiting;
    waiting = await redis.client.hlen(`sluice:{${KEY}}:records`);
  }
}

async function idsInQueue(redis) {
  const entries = await redis.client.lrange(`sluice:{${KEY}}:queue`, 0, -1);
  return entries.map((entry) => entry.split(/[:@]/)[1]);
}

/**
 * Whether the answers came in the order of the queue. Two connections that are written to one right
 * after the other may be read the other way round, so places may differ by a few answers.
 */
function isInOrder(queue, answered) {
  const places = new Map(queue.map((id, place) => [id, place]));
  const served = answered.map((id) => places.get(id)).filter((place) => place !== undefined);
  const MAX_OVERTAKEN = 64;
  let furthest = -1;
  for (const place of served) {
    if (place < furthest - MAX_OVERTAKEN) return false;
    furthest = Math.max(furthest, place);
  }
  return served.length === queue.length;
}
