// The child processes of a benchmark: they end with it, and it ends if one of them does.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const START_TIMEOUT_MILLIS = 20_000;

const running = new Set();

/** Ends all running children, however the benchmark ends. */
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

/** A measurement without one of its processes measures nothing. */
export function track(child, name) {
  running.add(child);
  child.once('error', ({ message }) => {
    console.error(`${name} can't be started: ${message}`);
    process.exit(1);
  });
  child.once('exit', (code, signal) => {
    if (!running.delete(child)) return;
    console.error(`${name} has ended with ${code ?? signal}`);
    process.exit(1);
  });
}

/** Ends a tracked child, and waits until it has ended. */
export async function end(child, signal) {
  running.delete(child);
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** Waits until a port of 127.0.0.1 accepts connections. */
export async function accepts(port) {
  const giveUpAt = Date.now() + START_TIMEOUT_MILLIS;
  while (Date.now() < giveUpAt) {
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return;
    } catch {
      await delay(50);
    } finally {
      socket.destroy();
    }
  }
  throw new Error(`nothing listens on port ${port} after ${START_TIMEOUT_MILLIS} ms`);
}
