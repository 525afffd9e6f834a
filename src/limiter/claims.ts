/**
 * A claim names a check whose caller has chosen the request id: `<request id>#<number>`. All checks with the id are one
 * request, which belongs to the latest of them. The number tells them apart.
 */
const SEPARATOR = '#';

let last = 0;

/** Returns the number of another check: no two of this process have the same. */
export function nextClaimNumber(): number {
  last += 1;
  return last;
}

/** @returns undefined without a number, which only a check has whose caller has chosen the request id */
export function claimOf(requestId: string, number: number | undefined): string | undefined {
  return number === undefined ? undefined : `${requestId}${SEPARATOR}${number}`;
}

/** What a claim names. `number` is undefined if it is a request id. */
export interface Claimed {
  readonly requestId: string;
  readonly number: number | undefined;
}

/** @param claim a claim, or a request id */
export function parseClaim(claim: string): Claimed {
  const [requestId = '', number] = claim.split(SEPARATOR);
  return { requestId, number: number === undefined ? undefined : Number(number) };
}
