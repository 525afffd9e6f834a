import { type Flood, floodWithBodies } from '../../costly-bodies.js';
import { requestText } from '../../raw-http.js';
import { floodUnread, sendOnly } from '../../unread-answers.js';
import type { Fleet } from '../fleet.js';
import { REPLICA_LEASE_MILLIS } from '../limits.js';
import type { FaultKind } from './fault.js';

/** A replica dies and has a successor. */
export function replicaDies(fleet: Fleet): FaultKind {
  return replicaEnds(fleet, 'SIGKILL of a replica', (index) => fleet.kill(index));
}

/** A replica is stopped, as in a rollout, and has a successor. */
export function replicaStops(fleet: Fleet): FaultKind {
  return replicaEnds(fleet, 'SIGTERM of a replica', (index) => fleet.terminate(index));
}

function replicaEnds(
  fleet: Fleet,
  name: string,
  begin: (index: number) => Promise<void>,
): FaultKind {
  return {
    name,
    draw: (random) => {
      const index = random.pick(fleet.indexes);
      return {
        target: `replica ${index}`,
        scope: `replica ${index}`,
        isolates: [index],
        millis: random.whole(0, 1000),
        begin: () => begin(index),
        end: () => fleet.replace(index),
      };
    },
  };
}

/** A replica stands still, one time in four for longer than its lease. */
export function replicaStandsStill(fleet: Fleet): FaultKind {
  return {
    name: 'SIGSTOP of a replica',
    draw: (random) => {
      const index = random.pick(fleet.indexes);
      const millis = random.chance(0.25)
        ? random.whole(REPLICA_LEASE_MILLIS, REPLICA_LEASE_MILLIS + 1000)
        : random.whole(200, 1500);
      return {
        target: `replica ${index} for ${millis} ms`,
        scope: `replica ${index}`,
        stops: [index],
        isolates: [index],
        millis,
        begin: () => {
          fleet.signal(index, 'SIGSTOP');
        },
        end: () => {
          fleet.signal(index, 'SIGCONT');
        },
      };
    },
  };
}

/** A client sends a replica the most costly bodies, which must harm nobody. */
export function replicaGetsCostlyBodies(fleet: Fleet): FaultKind {
  return flooded(fleet, 'costly bodies to a replica', (url) => floodWithBodies(url, 4));
}

/** Clients send a replica many requests with large answers, and read nothing. */
export function replicaGetsUnreadAnswers(fleet: Fleet): FaultKind {
  return flooded(fleet, 'unread answers of a replica', floodUnread);
}

/** Clients send a replica bulks of requests that it rejects. */
export function replicaGetsRejectedRequests(fleet: Fleet): FaultKind {
  const text = requestText('POST', '/nothing').repeat(100);
  return flooded(fleet, 'rejected requests to a replica', async (url) => {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => sendOnly(url, text)));
    return {
      stop: () => {
        for (const socket of sockets) socket.destroy();
        return Promise.resolve();
      },
    };
  });
}

function flooded(
  fleet: Fleet,
  name: string,
  begin: (url: string) => Flood | Promise<Flood>,
): FaultKind {
  return {
    name,
    draw: (random) => {
      const index = random.pick(fleet.indexes);
      let flood: Flood | undefined;
      return {
        target: `replica ${index}`,
        scope: `replica ${index}`,
        millis: random.whole(500, 1500),
        begin: async () => {
          flood = await begin(fleet.urlOf(index));
        },
        end: () => flood?.stop(),
      };
    },
  };
}
