// What `GET /debug` of a hundred thousand keys does to the checks that are made meanwhile.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

import { latencyAt, saturate } from '../lib/load.mjs';
import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';
import { fill } from './many-keys.mjs';

const KEYS = 100_000;
const LOAD = { name: 'hot', keys: 1 };
const READER = fileURLToPath(new URL('../lib/debug-reader.mjs', import.meta.url));
const MEMORY_INTERVAL_MILLIS = 100;

export async function debugListing({ redisProgram, rounds, seconds }) {
  const redis = await RedisServer.start(redisProgram);
  await fill(redis, 'listed', KEYS);
  const replica = await Server.start('sluice', SLUICE, {
    REDIS_URL: redis.url,
    MAX_REQUESTS: '1000000000',
    WINDOW_MILLIS: '3600000',
    // All rounds together approve more checks of the key than a window keeps ids for by default.
    MAX_IDS_PER_KEY: '1000000000',
  });
  await saturate(replica, { ...LOAD, seconds: 3 });
  const half = (await saturate(replica, { ...LOAD, seconds: 3 })).perSecond / 2;
  await readListings(replica, 1);

  const alone = [];
  const beside = [];
  const listings = [];
  let mostBytes = 0;
  const bytesBefore = await replica.residentBytes();
  for (let round = 0; round < rounds; round += 1) {
    progress(`debug: round ${round + 1} of ${rounds}, checks alone`);
    alone.push((await latencyAt(replica, half, { ...LOAD, seconds })).p99Micros);
    progress(`debug: round ${round + 1} of ${rounds}, checks beside a listing`);
    const listing = readListings(replica, 0, seconds + 1);
    const watch = watchMemory(replica);
    beside.push((await latencyAt(replica, half, { ...LOAD, seconds })).p99Micros);
    listings.push(await listing);
    mostBytes = Math.max(mostBytes, await watch.stop());
  }
  await replica.stop();
  await redis.stop();
  return {
    keys: KEYS,
    perSecond: half,
    p99MicrosAlone: summary(alone),
    p99MicrosBeside: summary(beside),
    besideToAlone: ratio(beside, alone),
    listings: listings.reduce((sum, { count }) => sum + count, 0),
    secondsPerListing: summary(listings.map((listing) => listing.seconds)),
    bytesPerListing: listings[0].bytes,
    memoryGrowthBytes: mostBytes - bytesBefore,
  };
}

/** Reads listings one after the other in a separate process, and checks that each has every key. */
async function readListings(replica, atLeast, seconds = 0) {
  const reader = spawn(process.execPath, [READER, replica.url, KEYS, atLeast, seconds], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output, [code]] = await Promise.all([text(reader.stdout), once(reader, 'close')]);
  if (code !== 0) throw new Error('a listing was not whole');
  return JSON.parse(output);
}

/** The most memory of the replica since then, without a garbage collection. */
function watchMemory(replica) {
  let most = 0;
  let asking = Promise.resolve();
  const look = async () => {
    most = Math.max(most, (await replica.ask('memory now')).residentBytes);
  };
  const timer = setInterval(() => {
    asking = asking.then(look);
  }, MEMORY_INTERVAL_MILLIS);
  return {
    stop: async () => {
      clearInterval(timer);
      await asking;
      return most;
    },
  };
}
