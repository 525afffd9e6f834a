/** How long a client may take, in ms. The wait of a request for its turn has no such limit. */
export interface Timeouts {
  /** To send a request's head, or to agree on TLS. */
  readonly headMillis: number;
  /** To send a request with its body. */
  readonly requestMillis: number;
  /** To send the next request on a connection. */
  readonly idleMillis: number;
  /** How often Node checks the first two. */
  readonly checkMillis: number;
}

export const TIMEOUTS: Timeouts = {
  headMillis: 10_000,
  requestMillis: 30_000,
  // Many load balancers keep an idle connection for 60 s. The service has to keep it longer: closing it would fail a
  // request that is just being sent.
  idleMillis: 75_000,
  checkMillis: 1000,
};

/**
 * After this silence on a connection, TCP asks whether the host of the client is still there. Node lets it ask ten times,
 * a second apart, before the connection ends. So a host that has vanished leaves its places within a minute, and a
 * network may fail for ten seconds.
 */
export const SILENCE_MILLIS = 45_000;
