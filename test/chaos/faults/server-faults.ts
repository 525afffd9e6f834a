import type { RedisProcess } from '../../support/redis-process.js';
import { type FaultKind, nothingToMend } from './fault.js';

/** Faults of Redis servers, one at a time. */
export const SERVER_SCOPE = 'server';

/** The server that a fault is done to; asked when it begins. */
export type Victim = () => Promise<RedisProcess>;

export function connectionsAreCut(victim: Victim, type: 'NORMAL' | 'PUBSUB'): FaultKind {
  return {
    name: `CLIENT KILL TYPE ${type}`,
    draw: () => ({
      target: 'primary',
      scope: SERVER_SCOPE,
      millis: 0,
      begin: async () => cutConnectionsOfReplicas(await victim(), type),
      end: nothingToMend,
    }),
  };
}

/** Of the replicas only, so that the round's own account is not cut. */
async function cutConnectionsOfReplicas(
  server: RedisProcess,
  type: 'NORMAL' | 'PUBSUB',
): Promise<void> {
  const list = (await server.command('CLIENT', 'LIST', 'TYPE', type)) as string;
  for (const line of list.split('\n')) {
    const id = /^id=(\d+) .* name=sluice:/.exec(line)?.[1];
    if (id !== undefined) await server.command('CLIENT', 'KILL', 'ID', id);
  }
}

export function commandsArePaused(victim: Victim, mode: 'ALL' | 'WRITE'): FaultKind {
  return {
    name: `CLIENT PAUSE ${mode}`,
    draw: (random) => {
      const millis = random.whole(100, 1500);
      return {
        target: `primary for ${millis} ms`,
        scope: SERVER_SCOPE,
        // It ends by itself.
        millis,
        begin: async () => (await victim()).command('CLIENT', 'PAUSE', millis, mode),
        end: nothingToMend,
      };
    },
  };
}

export function scriptsAreForgotten(victim: Victim): FaultKind {
  return {
    name: 'SCRIPT FLUSH',
    draw: () => ({
      target: 'primary',
      scope: SERVER_SCOPE,
      millis: 0,
      begin: async () => (await victim()).command('SCRIPT', 'FLUSH'),
      end: nothingToMend,
    }),
  };
}

interface Loss {
  readonly loses?: 'unreplicated' | 'memory';
  /** Resolves when the topology has settled on what has happened. */
  readonly settled?: () => Promise<void>;
}

/** A server stands still and goes on. */
export function serverStandsStill(
  name: string,
  victim: Victim,
  { loses, settled }: Loss,
): FaultKind {
  return {
    name,
    draw: (random) => {
      const millis = random.whole(200, 3000);
      let stopped: RedisProcess | undefined;
      return {
        target: `primary for ${millis} ms`,
        scope: SERVER_SCOPE,
        ...(loses && { loses }),
        millis,
        begin: async () => {
          stopped = await victim();
          stopped.signal('SIGSTOP');
        },
        end: async () => {
          stopped?.signal('SIGCONT');
          await settled?.();
        },
      };
    },
  };
}

/** A server dies and comes back. */
export function serverDies(
  name: string,
  victim: Victim,
  { withData, loses, settled }: Loss & { readonly withData: boolean },
): FaultKind {
  return {
    name,
    draw: (random) => {
      const millis = random.whole(0, 2500);
      let killed: RedisProcess | undefined;
      return {
        target: `primary for ${millis} ms`,
        scope: SERVER_SCOPE,
        ...(loses && { loses }),
        millis,
        begin: async () => {
          killed = await victim();
          await killed.kill();
        },
        end: async () => {
          await killed?.restart({ withData });
          await settled?.();
        },
      };
    },
  };
}
