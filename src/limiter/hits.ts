/**
 * The ids of the approvals that one check with hits takes. `lua/lib/hits.lua` names them alike.
 * @returns the request id itself, then one for each further hit
 */
export function idsOfHits(requestId: string, hits = 1): string[] {
  const ids = [requestId];
  for (let hit = 2; hit <= hits; hit += 1) ids.push(`${requestId}#${hit}`);
  return ids;
}
