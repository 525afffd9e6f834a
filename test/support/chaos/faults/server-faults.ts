import { forgetScripts } from '../../forget-scripts.js';
import { killReplicaConnections } from '../../kill-connections.js';
import type { RedisProcess } from '../../redis-process.js';
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
      // Of the replicas only, so that the round's own account is not cut.
      begin: async () => {
        const server = await victim();
        await killReplicaConnections((...command) => server.command(...command), type);
      },
      end: nothingToMend,
    }),
  };
}

interface Loss {
  readonly loses?: 'unreplicated' | 'memory';
  /** Resolves when the topology has settled on what has happened. */
  readonly settled?: () => Promise<void>;
}

export function commandsArePaused(
  victim: Victim,
  mode: 'ALL' | 'WRITE',
  { loses, settled }: Loss = {},
): FaultKind {
  return {
    name: `CLIENT PAUSE ${mode}`,
    draw: (random) => {
      const millis = random.whole(100, 1500);
      return {
        target: `primary for ${millis} ms`,
        scope: SERVER_SCOPE,
        silencesRedis: true,
        ...(loses && { loses }),
        // It ends by itself.
        millis,
        begin: async () => (await victim()).command('CLIENT', 'PAUSE', millis, mode),
        end: () => settled?.(),
      };
    },
  };
}

export function scriptsAreForgotten(victim: Victim): FaultKind {
  return {
    name: 'FUNCTION FLUSH and SCRIPT FLUSH',
    draw: () => ({
      target: 'primary',
      scope: SERVER_SCOPE,
      millis: 0,
      begin: async () => forgetScripts(await victim()),
      end: nothingToMend,
    }),
  };
}

/** A server stands still and goes on. */
export function serverStandsStill(name: string, victim: Victim, loss: Loss): FaultKind {
  return serverFault(name, victim, loss, {
    millis: [200, 3000],
    begin: (server) => {
      server.signal('SIGSTOP');
    },
    end: (server) => {
      server.signal('SIGCONT');
    },
  });
}

/** A server dies and comes back. */
export function serverDies(
  name: string,
  victim: Victim,
  { withData, ...loss }: Loss & { readonly withData: boolean },
): FaultKind {
  return serverFault(name, victim, loss, {
    millis: [0, 2500],
    begin: (server) => server.kill(),
    end: (server) => server.restart({ withData }),
  });
}

interface ServerFault {
  /** From how long to how long it goes on. */
  readonly millis: readonly [min: number, max: number];
  readonly begin: (server: RedisProcess) => Promise<void> | void;
  readonly end: (server: RedisProcess) => Promise<void> | void;
}

/** A fault of one server, which the topology has to settle on. */
function serverFault(
  name: string,
  victim: Victim,
  { loses, settled }: Loss,
  { millis: [min, max], begin, end }: ServerFault,
): FaultKind {
  return {
    name,
    draw: (random) => {
      const millis = random.whole(min, max);
      let server: RedisProcess | undefined;
      return {
        target: `primary for ${millis} ms`,
        scope: SERVER_SCOPE,
        silencesRedis: true,
        ...(loses && { loses }),
        millis,
        begin: async () => {
          server = await victim();
          await begin(server);
        },
        end: async () => {
          if (server) await end(server);
          await settled?.();
        },
      };
    },
  };
}
