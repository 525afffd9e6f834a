// `npm start`: completes the set-up of a fresh clone, then serves in this same process, so that signals
// reach the service itself. package.json has `exec`, so that no shell is between npm and this process.
// `npm start -- --background` ends when the service serves, and leaves it running.
import { spawn } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { prepareToRun } from './lib/prepare.mjs';
import { ROOT, stop } from './lib/run.mjs';

const BACKGROUND = '--background';
const LOOK_EVERY_MILLIS = 50;

await prepareToRun();
if (process.argv.includes(BACKGROUND)) await serveInBackground();
else await import('../dist/main.js');

/** Starts the service, and says where it serves. Ends this process with its log if it ends instead. */
async function serveInBackground() {
  const level = process.env.LOG_LEVEL;
  if (['warn', 'error', 'fatal', 'silent'].includes(level)) {
    stop(`${BACKGROUND} waits for a line of the log, which LOG_LEVEL=${level} leaves out.`);
  }
  const log = join(mkdtempSync(join(tmpdir(), 'sluice-')), 'log');
  const output = openSync(log, 'a');
  const words = process.argv.slice(2).filter((word) => word !== BACKGROUND);
  const service = spawn(process.execPath, [join(ROOT, 'dist/main.js'), ...words], {
    stdio: ['ignore', output, output],
  });
  // Its own line, since another service may answer on the port.
  const serving = /"port":(\d+)[^\n]*"msg":"serving"/;
  let found;
  while (!(found = serving.exec(readFileSync(log, 'utf8')))) {
    if (service.exitCode !== null || service.signalCode !== null) stop(readFileSync(log, 'utf8'));
    await wait(LOOK_EVERY_MILLIS);
  }
  console.log(
    `Sluice serves on http://localhost:${found[1]}. Its log: ${log}. To end it: kill ${service.pid}`,
  );
  service.unref();
}
