import type { SimulatedClient } from './client.js';
import { Violation } from './violation.js';
import type { World } from './world.js';

/** What is wrong with the conflict that a check was told of, if anything is. */
export function conflictFault(world: World, client: SimulatedClient): Violation | undefined {
  const { name, conflict, request } = client;
  if (conflict === undefined || isTrue(world, client)) return undefined;
  return new Violation('a conflict of a request id is one', `${name}: ${conflict} ${request.id}`);
}

function isTrue(world: World, client: SimulatedClient): boolean {
  const { request, conflict, askedHits, askedHold } = client;
  const others = request.checks.filter((check) => check !== client && check.ranBy !== undefined);
  switch (conflict) {
    case 'taken_over':
      return others.length > 0;
    case 'other_hits':
      return others.some((check) => check.askedHits !== askedHits);
    case 'other_hold':
    case 'other_holder':
      return others.some((check) => check.askedHold !== askedHold);
    case 'withdrawn':
      // Redis does not remember why a place has ended that a later check has ended.
      return request.withdrawnBy > 0 || others.length > 0 || world.hasLostMemory;
    default:
      // The model judges whether it was released, or its hold lapsed. A check that is sent again may find its own approval so.
      return request.checks.some((check) => check.approvedBy !== undefined) || world.hasLostMemory;
  }
}
