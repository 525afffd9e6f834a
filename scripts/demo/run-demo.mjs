import { writeFileSync } from 'node:fs';

import { Account } from './account.mjs';
import { startRedis, startReplica } from './processes.mjs';
import { fitsScreen, showOnScreen } from './screen.mjs';
import { linePrinter } from './sentences.mjs';
import { KEY, MAX_REQUESTS, REPLICAS } from './setting.mjs';
import { Story } from './story.mjs';
import { judge } from './verdict.mjs';

/**
 * Runs the demo and shows it: in a terminal as a changing picture, else as lines.
 * @param redisProgram the `redis-server`
 * @returns whether all of Sluice's promises were kept
 */
export async function runDemo(redisProgram, { clients, windowMillis, recordFile }) {
  const show = fitsScreen(process.stdout) ? showOnScreen(process.stdout) : linePrinter(console.log);
  const events = [];
  const tell = (event) => {
    events.push(event);
    show(event, events);
  };

  tell({ event: 'begun', clients, replicas: REPLICAS, maxRequests: MAX_REQUESTS, windowMillis });
  const redis = await startRedis(redisProgram);
  tell({ event: 'started', process: 'Redis', pid: redis.pid, port: redis.port });
  const settings = {
    REDIS_URL: redis.url,
    WINDOW_MILLIS: String(windowMillis),
    MAX_REQUESTS: String(MAX_REQUESTS),
  };
  const replicas = await Promise.all(REPLICAS.map((name) => startReplica(name, settings)));
  for (const { name, pid, port } of replicas) {
    tell({ event: 'started', process: `replica ${name}`, pid, port });
  }

  const account = await Account.open(redis.url, KEY, windowMillis);
  await new Story({ replicas, account, clients, windowMillis, tell }).run();
  account.close();
  const { problems, summary } = judge(events);
  tell({ event: 'judged', summary });
  if (recordFile) {
    writeFileSync(recordFile, events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  }
  return problems.length === 0;
}
