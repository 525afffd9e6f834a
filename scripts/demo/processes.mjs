// The processes of the demo. They end with it, also if it fails.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { freePort } from '../lib/free-port.mjs';
import { ROOT, stop } from '../lib/run.mjs';

/** Another program may take the free port before Redis does. */
const PORT_ATTEMPTS = 5;

const running = new Set();
const folders = [];

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => process.exit(128 + constants.signals[signal]));
}
// The reader has ended, as with `npm run demo | head`.
process.stdout.on('error', () => process.exit(1));

/** Starts a Redis with an empty memory on a free port. @returns its process id, port and URL */
export async function startRedis(program) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-'));
  folders.push(folder);
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const args = ['--port', port, '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
    try {
      const { pid } = await start('Redis', program, args, {}, 'Ready to accept connections');
      return { pid, port, url: `redis://127.0.0.1:${port}` };
    } catch (error) {
      if (attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

/** Starts a replica on a free port. @returns its name, process id, port, URL, id in Redis, and `kill` */
export async function startReplica(name, environment) {
  const env = { PATH: process.env.PATH, HOST: '127.0.0.1', PORT: '0', ...environment };
  const args = [join(ROOT, 'dist', 'main.js')];
  const child = await start(`replica ${name}`, process.execPath, args, { env }, '"msg":"serving"');
  const { port, replica: id } = JSON.parse(child.readyLine);
  return { name, pid: child.pid, port, url: `http://127.0.0.1:${port}`, id, kill: child.kill };
}

/** Resolves when the process prints a line with this text. If the process ends later, the demo fails. */
function start(name, program, args, options, readyText) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  running.add(child);
  let isReady = false;
  let output = '';
  child.stderr.on('data', (data) => (output += data));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      const reason = `${name} has ended with ${code ?? signal}: ${output}`;
      const wasKilled = !running.delete(child);
      if (isReady && !wasKilled) stop(reason);
      reject(new Error(reason));
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`;
      if (isReady || !line.includes(readyText)) return;
      isReady = true;
      const kill = () => {
        running.delete(child);
        child.kill('SIGKILL');
      };
      resolve({ pid: child.pid, readyLine: line, kill });
    });
  });
}
