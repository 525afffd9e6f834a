/** The bounds of a key's limits, from the environment and from requests alike. */
export const BOUNDS = {
  maxRequests: { min: 1, max: 1_000_000_000 },
  /** 0 turns queueing off. */
  maxRequestsInQueue: { min: 0, max: 100_000 },
  windowMillis: { min: 1, max: 366 * 24 * 60 * 60 * 1000 },
  /** 0 waits only for a turn that has come already. */
  maxWaitMillis: { min: 0, max: 366 * 24 * 60 * 60 * 1000 },
  hits: { min: 1, max: 1_000_000_000 },
  /** 0 leaves an approval that takes nothing. */
  amendedHits: { min: 0, max: 1_000_000_000 },
  /** A shorter hold could lapse while its renewal is on its way. */
  holdMillis: { min: 1000, max: 24 * 60 * 60 * 1000 },
  /** UTF-8 bytes of the text that says who holds an approval. */
  holderBytes: { min: 1, max: 64 },
  /** UTF-8 bytes of the name of a group. */
  groupBytes: { min: 1, max: 64 },
  /** The head start of a lane. */
  headStartMillis: { min: 0, max: 24 * 60 * 60 * 1000 },
  /** The share of a group. */
  weight: { min: 1, max: 1000 },
  /** 0 keeps no place. */
  keepMillis: { min: 0, max: 10 * 60 * 1000 },
  /** 0 ends a pause. */
  pauseMillis: { min: 0, max: 24 * 60 * 60 * 1000 },
  /** What a vendor says remains of a limit. */
  remaining: { min: 0, max: 1_000_000_000_000 },
  /** Until a vendor's limit resets. */
  resetMillis: { min: 1, max: 24 * 60 * 60 * 1000 },
  /** UTF-8 bytes of a key, after percent-decoding. */
  keyBytes: { min: 1, max: 512 },
} as const;
