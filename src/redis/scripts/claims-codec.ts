import type { RequestIdConflict } from '../../limiter/errors.js';

/** A wait that has ended without an approval, since its caller has chosen the request id. */
export interface EndedWait {
  readonly claim: string;
  readonly why: Extract<RequestIdConflict, 'taken_over' | 'withdrawn'>;
}

/**
 * A claim as Redis writes it: `<request id>`, or `<request id>#<replica id>#<number>` if its caller has chosen the id.
 * @returns the claim on this replica; undefined if it is another replica's
 */
export function claimHere(text: string, replicaId: string): string | undefined {
  // Nearly all.
  if (!text.includes('#')) return text;
  const [requestId = '', ...owner] = text.split('#');
  const number = owner.pop();
  return owner.join('#') === replicaId ? `${requestId}#${number ?? ''}` : undefined;
}

/** The waits on this replica among claims with `!<why>` after each. */
export function endedHere(texts: readonly string[], replicaId: string): EndedWait[] {
  return texts.flatMap((text) => {
    const [claim = '', why] = text.split('!');
    const here = claimHere(claim, replicaId);
    return here === undefined ? [] : [{ claim: here, why: why as EndedWait['why'] }];
  });
}
