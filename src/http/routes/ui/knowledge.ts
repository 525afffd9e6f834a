import type { FleetView } from '../../../service/fleet/fleet.js';
import type { KeyRow } from './key-rows.js';
import type { Survey } from './key-survey.js';

/** Whether the figures of an answer are those of all replicas as of now. */
export interface Knowledge {
  /** False if the store could not be read, in whole or in part: some figures are as they were known last. */
  readonly isComplete: boolean;
  /**
   * No figure is older, in milliseconds since 1970; the time of the answer if it is complete. Null if this replica could
   * not read the store since it is looked at.
   */
  readonly asOfMillis: number | null;
  /** The time of the answer, in milliseconds since 1970. */
  readonly nowMillis: number;
}

/** @param now milliseconds since 1970 */
export function knowledgeOf(
  fleet: Pick<FleetView, 'isCurrent' | 'readAt'>,
  survey: Pick<Survey, 'isComplete' | 'ageMillis' | 'failure'>,
  rows: readonly Pick<KeyRow, 'isCurrent'>[],
  now: number,
): Knowledge {
  const isListed = survey.failure !== 'unavailable' && rows.every(({ isCurrent }) => isCurrent);
  const surveyedAt = survey.isComplete ? now - survey.ageMillis : undefined;
  const moments = [fleet.isCurrent ? now : fleet.readAt, isListed ? now : surveyedAt];
  const isKnown = moments.every((moment) => moment !== undefined);
  return {
    isComplete: fleet.isCurrent && isListed,
    asOfMillis: isKnown ? Math.floor(Math.min(...moments)) : null,
    nowMillis: Math.floor(now),
  };
}
