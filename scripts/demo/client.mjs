import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import { KEEP_MILLIS, RETURN_MILLIS } from './setting.mjs';

/**
 * One request that waits under an id of its own. If its connection is lost, it comes back to its place at another replica,
 * as `sluice-client` does.
 */
export class Client {
  requestId = randomUUID();
  /** `undecided`, then `approved`, or `notApproved` with the status of its answer. */
  outcome = 'undecided';
  status;
  /** When it arrived and when it was decided, in ms since 1970. */
  arrivedAt;
  decidedAt;
  /** Each loss of its connection: when it was lost and came back, in ms since 1970, and the replicas before and after. */
  moves = [];

  /**
   * @param number its position in the order in which the clients come, from 1
   * @param replicas those that it may ask, the first one first
   */
  constructor(number, replicas) {
    this.number = number;
    this.replicas = replicas;
  }

  /** The replica at which it waits now. */
  get replica() {
    return this.replicas[this.moves.length];
  }

  /** Asks for permission, and resolves when it is decided. Never rejects. */
  async ask(key) {
    this.arrivedAt = Date.now();
    const query = `?canWait=true&requestId=${this.requestId}&keepMillis=${KEEP_MILLIS}`;
    while (this.outcome === 'undecided') {
      try {
        this.status = await askReplica(this.replica, key, query);
        this.outcome = this.status === 200 ? 'approved' : 'notApproved';
      } catch {
        await this.#comeBack();
      }
    }
    this.decidedAt = Date.now();
  }

  async #comeBack() {
    const lostAt = Date.now();
    await delay(RETURN_MILLIS);
    const to = this.replicas[this.moves.length + 1];
    if (to) this.moves.push({ lostAt, from: this.replica, returnedAt: Date.now(), to });
    else this.outcome = 'notApproved';
  }
}

/**
 * Asks a replica for permission.
 * @returns the status of its answer
 * @throws TypeError if the connection is lost
 */
export async function askReplica(replica, key, query = '') {
  const response = await fetch(`${replica.url}/rate/${key}${query}`, { method: 'POST' });
  await response.arrayBuffer();
  return response.status;
}
