/**
 * What a check calls its place or its approval: by its request id, and, if its caller has chosen the id, also by the number
 * of the check. A later check with the same id takes both over, and the earlier claim says nothing any more.
 */
export function claimOf(requestId: string, number: number | undefined): string {
  return number === undefined ? requestId : `${requestId}#${number}`;
}

/** The parts of a claim. */
export function partsOf(claim: string): {
  readonly requestId: string;
  /** Undefined if the service has made the request id. */
  readonly number: string | undefined;
} {
  const [requestId = '', number] = claim.split('#');
  return { requestId, number };
}
