// `npm run demo`: three replicas, 30 clients that wait their turn, and a replica that is killed, all with real
// requests to real processes. Exits with 1 if an approval came out of turn or above the limit.
import { demoOptions } from './demo/options.mjs';
import { findRedisServer } from './lib/find-redis.mjs';
import { prepareToRun } from './lib/prepare.mjs';

const options = demoOptions();
await prepareToRun();
const redisProgram = findRedisServer();

// It imports packages and the build.
const { runDemo } = await import('./demo/run-demo.mjs');
process.exit((await runDemo(redisProgram, options)) ? 0 : 1);
