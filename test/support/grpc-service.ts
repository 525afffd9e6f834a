import { type Clock, systemClock } from '../../src/common/clock.js';
import { eventLoop } from '../../src/common/ticks.js';
import { parseSettings } from '../../src/config/settings.js';
import { openGrpcPort, type Pings } from '../../src/grpc/grpc-port.js';
import { openAccess } from '../../src/service/callers/access.js';
import { Slices } from '../../src/service/deciding/slices.js';
import type { Timeouts } from '../../src/net/connection-bounds.js';
import { createService } from '../../src/service/service.js';
import { RecentDenials } from '../../src/service/deciding/recent-denials.js';
import { CountedKeys } from '../../src/service/fleet/counted-keys.js';
import { fleetOf } from './fleet-of-one.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import { createMetrics } from '../../src/metrics/prometheus-metrics.js';
import { parseRules } from '../../src/rules/parse-rules.js';
import { RuleSet } from '../../src/rules/rule-set.js';
import { defaultPolicy, withoutRules } from '../../src/rules/rules.js';
import type { Environment } from './both-limiters.js';
import { recordLog, type RecordedLog } from './recorded-log.js';
import { GATEWAY_SETTINGS } from './grpc-app.js';

/** Only the port for gateways, with a limiter of the test's own. */
export interface GrpcService {
  readonly grpcPort: number;
  readonly log: RecordedLog;
}

interface Options {
  readonly environment?: Environment;
  /** Rules in the form of a rules file. */
  readonly rules?: readonly object[];
  readonly timeouts?: Timeouts;
  readonly clock?: Clock;
  readonly pings?: Pings;
}

/** Services of one file's tests, each of which ends with its test. */
export function useGrpcServices(): (limiter: Limiter, options?: Options) => Promise<GrpcService> {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  });

  return async (limiter, options = {}) => {
    const settings = parseSettings({
      ...GATEWAY_SETTINGS,
      HOST: '127.0.0.1',
      ...options.environment,
    });
    const log = recordLog('debug');
    const keys = parseRules(JSON.stringify({ keys: options.rules ?? [] }));
    const rules = new RuleSet(keys, defaultPolicy(settings));
    const metrics = createMetrics(() => limiter.waiting(), withoutRules(settings));
    const recentDenials = new RecentDenials();
    const countedKeys = new CountedKeys(limiter, systemClock, () => metrics.decisionTotals());
    const service = createService({
      limiter,
      store: limiter,
      policyOf: (key) => rules.policyOf(key),
      metrics,
      undecided: { record: (reason) => metrics.failed(reason) },
      recentDenials,
      countedKeys,
      fleet: fleetOf(metrics, limiter, recentDenials, countedKeys),
      access: openAccess(),
      slices: new Slices(eventLoop),
      settings,
    });
    const port = await openGrpcPort(
      {
        service,
        metrics,
        readiness: { assess: () => Promise.resolve({ reasons: [], remarks: [] }) },
        settings,
        logger: log.logger,
      },
      undefined,
      0,
      options.timeouts,
      options.clock,
      options.pings,
    );
    await port.startServing();
    stops.push(async () => {
      port.startDraining();
      const closed = port.stopAccepting();
      await limiter.close();
      port.cutConnections();
      await closed;
    });
    return { grpcPort: port.port, log };
  };
}
