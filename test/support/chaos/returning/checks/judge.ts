import { wrongAnswers } from './answers.js';
import type { Evidence } from './evidence.js';
import { approvedTwice, wrongGrants } from './grants.js';
import { overfull, unserved } from './limits.js';
import { brokenOrder } from './order.js';
import { lostPlaces, lostTurns } from './places.js';

/** Describes everything that breaks a promise to clients that return. */
export function judge(evidence: Evidence): string[] {
  const checks = [
    ...[brokenOrder, lostPlaces, lostTurns, wrongGrants, approvedTwice],
    ...[overfull, unserved, wrongAnswers],
  ];
  return checks.flatMap((check) => check(evidence));
}
