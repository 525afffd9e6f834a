/** How long a client may take over what; none of it is the time for which a request may wait. */
export interface Timeouts {
  /** To send a request's head, or to agree on TLS. */
  readonly headMillis: number;
  /** To send a request with its body. */
  readonly requestMillis: number;
  /** To send the next request on a connection. */
  readonly idleMillis: number;
  /** How often the first two are looked at. */
  readonly checkMillis: number;
}

/** The service's own. */
export const TIMEOUTS: Timeouts = {
  headMillis: 10_000,
  requestMillis: 30_000,
  // Longer than a load balancer keeps a connection that is not used, 60 s for many: one that the
  // service closed first would fail the request that is just being sent on it.
  idleMillis: 75_000,
  checkMillis: 1000,
};
