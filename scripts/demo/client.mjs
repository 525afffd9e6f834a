/** One request that may wait, and its outcome. */
export class Client {
  /** Its id in Redis: from its place in the queue, then from its answer. */
  requestId;
  /** `undecided`, then `approved`, `lost` with its connection, or `notApproved`. */
  outcome = 'undecided';
  /** The status of its answer. */
  status;
  /** When it arrived and when it was decided, in ms since 1970. */
  arrivedAt;
  decidedAt;

  /** @param number its position in the order in which the clients come, from 1 */
  constructor(number, replica) {
    this.number = number;
    this.replica = replica;
  }

  /** Asks its replica, and resolves when it is decided. Never rejects. */
  async ask(key) {
    this.arrivedAt = Date.now();
    try {
      const answer = await askReplica(this.replica, key, '?canWait=true');
      this.status = answer.status;
      this.outcome = answer.status === 200 ? 'approved' : 'notApproved';
      this.requestId = answer.requestId ?? this.requestId;
    } catch {
      this.outcome = 'lost';
    }
    this.decidedAt = Date.now();
  }
}

/**
 * Asks a replica for permission.
 * @returns the status and the request id of its answer
 * @throws TypeError if the connection is lost
 */
export async function askReplica(replica, key, query = '') {
  const response = await fetch(`${replica.url}/rate/${key}${query}`, { method: 'POST' });
  const { request_id: requestId } = await response.json();
  return { status: response.status, requestId };
}
