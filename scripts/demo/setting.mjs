// The events of the demo and their times. Times are fractions of a window.

export const KEY = 'demo';
export const MAX_REQUESTS = 3;
export const REPLICAS = ['A', 'B', 'C'];

/**
 * The replica of each client, in the order of their arrival. This order is not a rotation, which could be confused
 * with the order of the queue.
 */
const REPLICA_OF_CLIENT = 'ACBBACCABACBBCAABBCACBCACBACAB';
export const MOST_CLIENTS = REPLICA_OF_CLIENT.length;

/** The replica that is killed when this fraction of the clients has been approved, soon after a window began. */
export const KILLED = 'B';
export const APPROVED_BEFORE_KILL = 1 / 3;
export const KILL_AT = 0.1;

/** All clients come in the first window, and find it full. */
export const ARRIVALS_TAKE = 0.7;

/** How long a place is kept without a connection, and when a client whose connection is lost comes back. */
export const KEEP_MILLIS = 10_000;
export const RETURN_MILLIS = 100;

/**
 * The replicas that a client asks, in their order: first the one at which it waits, then one that lives on, by turns. Clients
 * are numbered from 1.
 */
export function replicasOfClient(number) {
  const first = REPLICA_OF_CLIENT[number - 1];
  const others = REPLICAS.filter((name) => name !== KILLED);
  const earlier = [...REPLICA_OF_CLIENT.slice(0, number - 1)].filter((name) => name === KILLED);
  return first === KILLED ? [first, others[earlier.length % others.length]] : [first];
}
