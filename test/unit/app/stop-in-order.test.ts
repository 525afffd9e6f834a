import { serveUntilSeen, stopInOrder } from '../../../src/app/stop-in-order.js';
import type { Ports } from '../../../src/http/server/ports.js';
import type { Limiter } from '../../../src/limiter/limiter.js';

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

const STEPS = ['stopAccepting', 'handOver', 'endUnowed', 'close', 'cutConnections'] as const;

test.each(STEPS)('a stop in which %s fails takes all other steps, and fails', async (failing) => {
  const taken: string[] = [];
  const step = (name: (typeof STEPS)[number]) => () => {
    taken.push(name);
    if (name === failing) throw new Error(`${name} is broken`);
    return Promise.resolve();
  };
  const steps = Object.fromEntries(STEPS.map((name) => [name, step(name)]));
  const parts = { ...steps, waiting: 1 } as unknown as Ports & Limiter;

  await expect(stopInOrder(parts, parts, 0, undefined)).rejects.toMatchObject({
    errors: [new Error(`${failing} is broken`)],
  });
  expect(taken).toEqual(STEPS);
});
