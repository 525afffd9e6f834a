// Waits twice, one after the other, in a process of its own: `node wait-twice.mjs <url> <key>`. Prints a line in between.
import { SluiceClient } from '../../../clients/node/dist/index.js';

const [url, key] = process.argv.slice(2);
const sluice = new SluiceClient(url);
await sluice.wait(key);
console.log('approved');
await sluice.wait(key);
