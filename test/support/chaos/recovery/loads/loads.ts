import { status } from '@grpc/grpc-js';

import { Gateway, of } from '../../../grpc-gateway.js';
import type { LoadName } from '../cells.js';
import {
  LONGER_THAN_A_CELL,
  type Load,
  type LoadParts,
  releaseAll,
  releaseOne,
  shared,
} from './load.js';

const PLAIN_CLIENTS = 1000;
const BULK_CLIENTS = 20;
const RELEASERS_OF_ONE = 300;
/** Each has a connection of its own, of which a port has no end of streams open. */
const GATEWAYS = 10;
const DESCRIPTORS = 100;
const WAITERS_PER_KEY = 2;
const LEAVING_BULK_CLIENTS = 5;

/** Their checks go to Redis in one call. After several failed calls, withdrawals wait until Redis is known to be up. */
const ONE_CALL_KEYS = 12;
const TURNING_WINDOW_MILLIS = 2000;
const UNTIL_THE_SURGE = 3_600_000;

/** Reached in the course of a cell, after the surge that meets the fault. */
const SOME = 4;

export const LOADS: Readonly<Record<LoadName, Load>> = {
  plain: {
    maximum: SOME,
    mostKeys: 20_000,
    begin: (parts) => {
      const { clients, requests, random, keys } = parts;
      clients.add('plain clients', PLAIN_CLIENTS, async () => {
        await clients.rest(random.whole(500, 3000));
        await requests.check(random.pick(keys));
      });
    },
  },
  bulk: {
    maximum: SOME,
    mostKeys: 19_000,
    begin: (parts) => {
      const { clients, requests, random, keys } = parts;
      const shares = shared(keys, BULK_CLIENTS);
      clients.add('bulk clients', shares.length, async (client) => {
        await requests.checkMany(shares[client]!);
        await clients.rest(random.whole(2000, 4000));
      });
    },
  },
  grpc: {
    maximum: SOME,
    mostKeys: 19_000,
    begin: (parts) => {
      const { clients, random, keys, grpcPort } = parts;
      const gateways = Array.from({ length: GATEWAYS }, () => new Gateway(grpcPort));
      const shares = shared(keys, Math.ceil(keys.length / DESCRIPTORS));
      clients.add('gateway calls', shares.length, async (client) => {
        await askGateway(parts, gateways[client % GATEWAYS]!, shares[client]!);
        await clients.rest(random.whole(2000, 4000));
      });
      clients.afterwards(() => {
        for (const gateway of gateways) gateway.close();
      });
    },
  },
  releases: {
    maximum: 1,
    mostKeys: 5000,
    begin: (parts) => {
      const { clients, requests, random, keys } = parts;
      const shares = shared(keys.slice(RELEASERS_OF_ONE), BULK_CLIENTS);
      clients.add('bulk releasers', shares.length, async (client) => {
        const held = await requests.checkMany(shares[client]!);
        await clients.rest(random.whole(1000, 4000));
        await releaseAll(parts, held);
      });
      clients.add('releasers', RELEASERS_OF_ONE, async (client) => {
        const held = await requests.check(keys[client]!);
        await clients.rest(random.whole(1000, 4000));
        if (held) await releaseOne(parts, held);
      });
    },
  },
  waiting: {
    maximum: 1,
    mostKeys: 1000,
    begin: (parts) => {
      const { clients, requests, random, keys, mayForget } = parts;
      clients.add('waiters', WAITERS_PER_KEY * keys.length, async (client) => {
        const asked = requests.wait(keys[client % keys.length]!);
        if (mayForget) {
          await Promise.race([clients.over, asked.answer]);
          asked.leave();
        }
        const held = await asked.answer;
        // Each holds its turn for a while, and then lets the next one have it.
        await clients.rest(random.whole(1000, 4000));
        if (held) await releaseOne(parts, held);
      });
    },
  },
  leaving: {
    maximum: 1,
    mostKeys: 1000,
    begin: (parts) => {
      const { clients, requests, random, keys } = parts;
      // Held to the end, so that nobody who leaves is approved at that moment: it would not be known who has the approval.
      const holding = holdAll(parts);
      clients.add('holder', 1, async () => {
        await holding;
        while (!clients.isOver) await clients.rest(1000);
      });
      clients.add('leaving waiters', keys.length, async (client) => {
        await holding;
        await clients.rest(random.whole(500, 1000));
        const asked = requests.wait(keys[client]!);
        await Promise.race([clients.rest(random.whole(1000, 4000)), asked.answer]);
        asked.leave();
        const held = await asked.answer;
        if (held) await releaseOne(parts, held);
      });
      clients.add('leaving bulk clients', LEAVING_BULK_CLIENTS, async (client) => {
        const share = Array.from({ length: 500 }, (_, i) => `left-${client}-${i}`);
        await requests.checkManyAndLeave(share);
        await clients.rest(random.whole(1000, 3000));
      });
    },
  },
  turning: {
    maximum: SOME,
    mostKeys: ONE_CALL_KEYS,
    firstWindowMillis: TURNING_WINDOW_MILLIS,
    begin: ({ clients, requests, approvals, keys }) => {
      const checks = Array.from({ length: SOME }, () => keys).flat();
      clients.add('bulk client', 1, async () => {
        await clients.rest(UNTIL_THE_SURGE);
        if (approvals.isKnown(keys[0]!)) await requests.checkMany(checks);
      });
    },
    makeKeys: async ({ requests, keys }) => {
      // Gives Redis the script that withdraws. Otherwise withdrawals come after the checks that are sent again.
      await requests.checkManyAndLeave(['left']);
      await requests.checkMany(keys, { windowMillis: LONGER_THAN_A_CELL });
      // From this the replica learns when the window ends, so that its next call has the names of one window only.
      await requests.checkMany(keys);
    },
  },
};

/** Takes an approval of each key, again and again where that was not decided. */
async function holdAll({ clients, requests, keys }: LoadParts): Promise<void> {
  for (const share of shared(keys, 1)) {
    let left = share;
    for (;;) {
      const held = new Set((await requests.checkMany(left)).map(({ key }) => key));
      left = left.filter((key) => !held.has(key));
      if (left.length === 0) break;
      await clients.pause();
    }
  }
}

/** All of its keys are approved, or none. */
async function askGateway(
  { approvals }: LoadParts,
  gateway: Gateway,
  keys: readonly string[],
): Promise<void> {
  const sentAt = Date.now();
  try {
    const { overall_code: code } = await gateway.ask({ descriptors: keys.map((key) => of(key)) });
    if (code === 'OK') for (const key of keys) approvals.approvedOne(key, sentAt);
  } catch (error) {
    if ((error as { code?: unknown }).code !== status.UNAVAILABLE) throw error;
    for (const key of keys) approvals.undecided(key);
  }
}
