import { forgetScripts } from '../../forget-scripts.js';
import { killReplicaConnections } from '../../kill-connections.js';
import type { RedisProcess } from '../../redis-process.js';
import { type FaultKind, nothingToMend } from './fault.js';

/** Faults of Redis servers, one at a time. */
export const SERVER_SCOPE = 'server';

/** The server that a fault is done to; asked when it begins. */
export type Victim = () => Promise<RedisProcess>;

/** Of the replicas only, so that the round's own account is not cut. */
export function connectionsAreCut(victim: Victim, type: 'NORMAL' | 'PUBSUB'): FaultKind {
  return momentary(`CLIENT KILL TYPE ${type}`, victim, (server) =>
    killReplicaConnections((...command) => server.command(...command), type),
  );
}

export function scriptsAreForgotten(victim: Victim): FaultKind {
  return momentary('FUNCTION FLUSH and SCRIPT FLUSH', victim, forgetScripts);
}

/** A fault of one server that is over as soon as it has begun. */
function momentary(
  name: string,
  victim: Victim,
  happen: (server: RedisProcess) => Promise<void>,
): FaultKind {
  return {
    name,
    draw: () => ({
      target: 'primary',
      scope: SERVER_SCOPE,
      millis: 0,
      begin: async () => happen(await victim()),
      end: nothingToMend,
    }),
  };
}

interface Loss {
  readonly loses?: 'unreplicated' | 'memory';
  /** Resolves when the topology has settled on what has happened. */
  readonly settled?: () => Promise<void>;
}

/** It ends by itself. */
export function commandsArePaused(
  victim: Victim,
  mode: 'ALL' | 'WRITE',
  loss: Loss = {},
): FaultKind {
  return serverFault(`CLIENT PAUSE ${mode}`, victim, loss, {
    millis: [100, 1500],
    begin: (server, millis) => server.command('CLIENT', 'PAUSE', millis, mode),
    end: nothingToMend,
  });
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
  /** Both are awaited. */
  readonly begin: (server: RedisProcess, millis: number) => unknown;
  readonly end: (server: RedisProcess) => unknown;
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
          await begin(server, millis);
        },
        end: async () => {
          if (server) await end(server);
          await settled?.();
        },
      };
    },
  };
}
