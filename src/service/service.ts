import type { Limiter } from '../limiter/limiter.js';
import type { Tracer } from '../tracing/sdk/otel-tracer.js';
import type { Access } from './callers/access.js';
import {
  checkDecider,
  type DecideCheck,
  type DecideParts,
  peekBy,
  type PeekCheck,
} from './deciding/decide-check.js';
import {
  type Pause,
  pauseBy,
  type Refund,
  refundBy,
  type ReportRemaining,
  reportRemainingBy,
} from './deciding/change-key.js';
import {
  type Amend,
  amendBy,
  type Release,
  releaseBy,
  type RunBulk,
  tracedBulk,
  tracedDecider,
} from './deciding/traced-decisions.js';
import type { Slices } from './deciding/slices.js';
import type { Fleet } from './fleet/fleet.js';

export interface ServiceParts extends DecideParts {
  readonly limiter: Limiter;
  /** The limiter without what decides in an outage of its store. */
  readonly store: Limiter;
  readonly fleet: Fleet;
  readonly access: Access;
  /** Shared by bulk requests and gRPC calls. */
  readonly slices: Slices;
  /** Undefined if requests are not traced. */
  readonly tracer?: Tracer | undefined;
}

/** What requests over HTTP and calls over gRPC ask for. It knows neither. */
export interface Service extends Pick<
  ServiceParts,
  'limiter' | 'store' | 'policyOf' | 'access' | 'fleet' | 'slices'
> {
  readonly decide: DecideCheck;
  readonly peek: PeekCheck;
  readonly release: Release;
  readonly amend: Amend;
  readonly pause: Pause;
  readonly refund: Refund;
  readonly reportRemaining: ReportRemaining;
  /** Runs the work of a bulk request, whose elements `decide` and `release`. */
  readonly runBulk: RunBulk;
}

export function createService(parts: ServiceParts): Service {
  const { limiter, store, policyOf, access, fleet, slices, tracer } = parts;
  const decide = checkDecider(parts);
  return {
    decide: tracer ? tracedDecider(decide, tracer) : decide,
    peek: peekBy(parts),
    release: releaseBy(limiter, tracer),
    amend: amendBy(limiter, policyOf, access, tracer),
    pause: pauseBy(parts),
    refund: refundBy(parts),
    reportRemaining: reportRemainingBy(parts),
    runBulk: tracer ? tracedBulk(tracer) : (_name, _context, work) => work(),
    limiter,
    store,
    policyOf,
    access,
    fleet,
    slices,
  };
}
