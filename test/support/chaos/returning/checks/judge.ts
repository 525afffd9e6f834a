import { wrongAnswers } from './answers.js';
import type { Evidence } from './evidence.js';
import { wrongGrants } from './grants.js';
import { lostPlaces, lostTurns } from './places.js';

/** Describes everything that breaks a promise to clients that return. */
export function judge(evidence: Evidence): string[] {
  return [lostPlaces, lostTurns, wrongGrants, wrongAnswers].flatMap((check) => check(evidence));
}
