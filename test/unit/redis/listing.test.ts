import type { Redis } from 'ioredis';
import { pino } from 'pino';

import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { Listing } from '../../../src/redis/listing.js';

let scans = 0;

/** The number of pages of a listing from SCANs with these cursors. */
async function pagesOf(nextCursor: (cursor: number) => number, longestMillis?: number) {
  scans = 0;
  const scan = (cursor: string) => {
    scans += 1;
    return Promise.resolve([String(nextCursor(Number(cursor))), []]);
  };
  const connections = {
    primaries: () => new Map([['primary', { scan } as unknown as Redis]]),
    slotOf: () => 0,
  };
  const parts = { connections, timeoutMillis: 1000, logger: pino({ level: 'silent' }) };
  const scripts = { inspect: () => Promise.reject(new Error('there is nothing to inspect')) };
  const listing = new Listing(scripts, new KeyNaming('sluice:'), parts, longestMillis);
  let pages = 0;
  for await (const page of listing.pages()) pages += page.length + 1;
  return pages;
}

test('a listing ends with the cursor 0', async () => {
  expect(await pagesOf((cursor) => (cursor + 1) % 1000)).toBe(1000);
});

// The steps before the cycle, and its length.
test.each([
  [0, 1],
  [1, 2],
  [500, 1],
  [500, 333],
  [3, 1000],
])('a listing ends if its cursors repeat in a cycle (%d, %d)', async (before, circle) => {
  const next = (cursor: number) => (cursor < before + circle ? cursor + 1 : before + 1);

  await expect(pagesOf(next)).rejects.toMatchObject({
    reason: 'store_unavailable',
    cause: { message: expect.stringContaining('SCAN has no end after a second cursor') as unknown },
  });
});

// The first, second, fourth ... cursor is compared with those that follow it.
test.each([
  [1, 2],
  [2, 3],
  [3, 6],
])('a cycle of %d cursors is found after %d SCANs', async (circle, expected) => {
  await expect(pagesOf((cursor) => (cursor < circle ? cursor + 1 : 1))).rejects.toThrow();
  expect(scans).toBe(expected);
});

test('a listing ends in time if its cursors never end', async () => {
  await expect(pagesOf((cursor) => cursor + 1, 20)).rejects.toMatchObject({
    cause: { message: 'SCAN has no end after 20 ms' },
  });
});
