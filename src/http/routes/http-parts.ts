import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import type { Metrics } from '../../metrics/prometheus-metrics.js';
import type { Readiness } from '../../readiness/readiness.js';
import type { Rules } from '../../rules/rules.js';
import type { Service } from '../../service/service.js';

/** What answers over HTTP are made of. */
export interface HttpParts {
  readonly service: Service;
  readonly rules: Rules;
  readonly metrics: Metrics;
  readonly replica: string;
  readonly readiness: Readiness;
  readonly settings: Settings;
  readonly logger: Logger;
}
