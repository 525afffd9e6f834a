import { serveUntilSeen } from '../../../src/app/stop-in-order.js';
import type { Ports } from '../../../src/http/server/ports.js';

/** Ports that note how they are asked to end idle connections. */
function portsThatNote(): { ports: Ports; asked: unknown[][] } {
  const asked: unknown[][] = [];
  const ports = {
    endIdle: (...args: unknown[]) => {
      asked.push(args);
      return Promise.resolve();
    },
  };
  return { ports: ports as unknown as Ports, asked };
}

test('idle connections end in the last fifth of the delay', async () => {
  const { ports, asked } = portsThatNote();
  await serveUntilSeen(ports, 100, undefined);

  expect(asked).toEqual([[20, undefined]]);
});

test('idle connections end at once in a hurry', async () => {
  const { ports, asked } = portsThatNote();
  const hurry = new AbortController();
  const seen = serveUntilSeen(ports, 3_600_000, hurry.signal);
  hurry.abort();
  await seen;

  expect(asked).toEqual([[720_000, hurry.signal]]);
});

test('without a delay idle connections end with the port', async () => {
  const { ports, asked } = portsThatNote();
  await serveUntilSeen(ports, 0, undefined);

  expect(asked).toEqual([]);
});
