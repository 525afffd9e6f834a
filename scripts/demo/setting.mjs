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

/** The lease of the killed replica ends before the next window begins, so that its clients get no approvals. */
export const LEASE = 2 / 3;

/** The name of the replica at which a client waits. Clients are numbered from 1. */
export function replicaOfClient(number) {
  return REPLICA_OF_CLIENT[number - 1];
}
