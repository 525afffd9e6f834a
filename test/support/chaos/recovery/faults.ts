import { setTimeout as delay } from 'node:timers/promises';

import { forgetScripts } from '../../forget-scripts.js';
import type { Random } from '../random.js';
import type { FaultName } from './cells.js';
import type { Network } from './network.js';
import type { Store } from './stores/store.js';

const LATE_MILLIS = 600;
const LATE_SHARE = 0.9;
const LATE_FOR_MILLIS = 3000;
const FLUSH_STALLED_MILLIS = 900;

/** What Redis may have forgotten of what it had answered: the last writes, or all. */
export type Loss = 'unreplicated' | 'memory';

export interface Fault {
  readonly loses?: Loss;
  /** Resolves at the end of the fault: every server serves as before, and a new primary takes writes. */
  happen(): Promise<void>;
}

export interface FaultParts {
  readonly store: Store;
  readonly network: Network;
  readonly random: Random;
}

export function faultNamed(name: FaultName, parts: FaultParts): Fault {
  return FAULTS[name](parts);
}

const FAULTS: Readonly<Record<FaultName, (parts: FaultParts) => Fault>> = {
  'stall-300': stall(300),
  'stall-800': stall(800),
  'stall-1500': stall(1500),
  'stall-5000': stall(5000),
  restart: restart({ withData: true }),
  'restart-empty': restart({ withData: false }),
  failover: ({ store }) => ({ loses: 'unreplicated', happen: () => store.failOver!() }),
  cut: ({ network }) => ({
    happen: () => {
      network.cut();
      return Promise.resolve();
    },
  }),
  late: ({ network, random }) => ({
    happen: async () => {
      network.delayReplies(LATE_MILLIS, () => random.chance(LATE_SHARE));
      await delay(LATE_FOR_MILLIS);
      network.pass();
    },
  }),
  flush: ({ store }) => ({
    happen: async () => {
      await Promise.all(store.servers.map(forgetScripts));
    },
  }),
  // The calls that wait for the servers are told that the scripts are gone when their callers have been told that they failed.
  'flush-stalled': (parts) => {
    const standstill = stall(FLUSH_STALLED_MILLIS)(parts);
    return {
      happen: async () => {
        await Promise.all(parts.store.servers.map(forgetScripts));
        await standstill.happen();
      },
    };
  },
};

/** All servers stand still and go on, as when their machine does. */
function stall(millis: number) {
  return ({ store }: FaultParts): Fault => ({
    happen: async () => {
      for (const server of store.servers) server.signal('SIGSTOP');
      await delay(millis);
      for (const server of store.servers) server.signal('SIGCONT');
      await store.takesWrites();
    },
  });
}

/** All primaries die and come back. */
function restart(options: { readonly withData: boolean }) {
  return ({ store }: FaultParts): Fault => ({
    ...(!options.withData && { loses: 'memory' }),
    happen: async () => {
      const primaries = await store.primaries();
      await Promise.all(primaries.map((primary) => primary.restart(options)));
      await store.takesWrites();
    },
  });
}
