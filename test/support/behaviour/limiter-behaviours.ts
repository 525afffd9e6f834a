import { describeAlgorithms, describeExtremes } from './algorithms.js';
import { describeCalendars } from './calendars.js';
import { describeFurtherLimits } from './further-limits.js';
import { describeGroups } from './groups.js';
import { describeHolders } from './holders.js';
import { describeHits } from './hits.js';
import { describeHolds } from './holds.js';
import { describeKeptPlaces } from './kept-places.js';
import { describeLaneLimits } from './lane-limits.js';
import { describeLimitedWaits } from './limited-waits.js';
import { describeLimiter } from './limiter-behaviour.js';
import { describePauses } from './pauses.js';
import { describePeeks } from './peeks.js';
import { describeRefunds } from './refunds.js';
import { describeReports } from './reports.js';
import { describeRequestIds } from './request-ids.js';
import { describeStatuses } from './statuses.js';
import { describeWindowOverrides } from './window-overrides.js';

/** The suites that every limiter has to pass. */
export const LIMITER_BEHAVIOURS = [
  describeLimiter,
  describeLimitedWaits,
  describeHolds,
  describeHolders,
  describeHits,
  describePauses,
  describePeeks,
  describeRefunds,
  describeReports,
  describeStatuses,
  describeWindowOverrides,
  describeFurtherLimits,
  describeCalendars,
  describeAlgorithms,
  describeExtremes,
  describeGroups,
  describeLaneLimits,
  describeRequestIds,
  describeKeptPlaces,
];
