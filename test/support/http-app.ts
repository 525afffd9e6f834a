import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Express } from 'express';
import { pino } from 'pino';

import { systemClock } from '../../src/common/clock.js';
import { eventLoop } from '../../src/common/ticks.js';
import { parseSettings, type Settings } from '../../src/config/settings.js';
import { openAccess } from '../../src/service/callers/access.js';
import { Slices } from '../../src/service/deciding/slices.js';
import type { HttpParts } from '../../src/http/routes/http-parts.js';
import { createHttpApp, type HttpApp } from '../../src/http/routes/routes.js';
import { requestListener } from '../../src/http/server/server.js';
import { createService, type ServiceParts } from '../../src/service/service.js';
import { RecentDenials } from '../../src/service/deciding/recent-denials.js';
import { CountedKeys } from '../../src/service/fleet/counted-keys.js';
import { fleetOf } from './fleet-of-one.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import { withoutRules } from '../../src/rules/rules.js';
import { createMetrics } from '../../src/metrics/prometheus-metrics.js';
import { holdToDocument } from './openapi/held-to-document.js';

/** The apps of the service. */
const settingsOf = new WeakMap<HttpApp, Settings>();

/** The HTTP surface over a limiter of the test's own, with defaults for everything else. */
export function httpAppOver(
  limiter: Limiter,
  { policyOf, ...parts }: Partial<HttpParts & Pick<ServiceParts, 'policyOf'>> = {},
): HttpApp {
  const settings = parts.settings ?? parseSettings({});
  const rules = withoutRules(settings);
  const metrics = createMetrics(() => limiter.waiting(), rules);
  const recentDenials = new RecentDenials();
  const countedKeys = new CountedKeys(limiter, systemClock, () => metrics.decisionTotals());
  const service = createService({
    limiter,
    store: limiter,
    policyOf: policyOf ?? ((key) => rules.current.policyOf(key)),
    metrics: parts.metrics ?? metrics,
    undecided: { record: (reason) => metrics.failed(reason) },
    recentDenials,
    countedKeys,
    fleet: fleetOf(metrics, limiter, recentDenials, countedKeys),
    access: openAccess(),
    slices: new Slices(eventLoop),
    settings,
  });
  const app = createHttpApp(
    {
      service,
      rules,
      metrics,
      replica: 'replica',
      readiness: { assess: () => Promise.resolve({ reasons: [], remarks: [] }) },
      settings,
      logger: pino({ level: 'silent' }),
      ...parts,
    },
    { limiting: true, debugging: true, telling: true },
  );
  settingsOf.set(app, settings);
  return app;
}

/** The default is 511. Further clients would have to retry after a second, three or seven. */
const MOST_CONNECTIONS_AT_ONCE = 2048;

/** An Express app on a free port. */
export interface ServedApp {
  readonly url: string;
  /** Resolves when the next answer has ended or is cut, after all its listeners have been called. */
  answerCloses(): Promise<void>;
  /** Closes the server, and resolves when the last request has been answered. */
  close(): Promise<void>;
}

/** Serves an app of the service, or a plain Express app. */
export async function serve(app: HttpApp | Express): Promise<ServedApp> {
  const ofService = 'answerUnrouted' in app ? app : undefined;
  const server = createServer(ofService ? requestListener(ofService) : (app as Express));
  server.listen({ port: 0, host: '127.0.0.1', backlog: MOST_CONNECTIONS_AT_ONCE });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const settings = ofService && settingsOf.get(ofService);
  const letGo = settings && holdToDocument(url, settings);
  return {
    url,
    answerCloses: async () => {
      const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
      await once(response, 'close');
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      await closed;
      letGo?.();
    },
  };
}
