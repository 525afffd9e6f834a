// Works with a permit, in a process of its own: `node work-with-permit.mjs <url> <key> <work>`. Prints the id of the permit.
import { SluiceClient } from '../../../clients/node/dist/index.js';

const WORK = {
  'ends when its permit is lost': (signal) =>
    new Promise((resolve) => {
      const keepAlive = setInterval(() => undefined, 1000);
      signal.addEventListener('abort', () => {
        clearInterval(keepAlive);
        resolve();
      });
    }),
  'has nothing to wait for': () => new Promise(() => undefined),
  ends: () => undefined,
};

const [url, key, work] = process.argv.slice(2);
await new SluiceClient(url).withPermit(
  key,
  (signal, requestId) => {
    console.log(requestId);
    return WORK[work](signal);
  },
  { maxRequests: 1, holdMillis: 3000 },
);
