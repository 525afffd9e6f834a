import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Express } from 'express';
import { pino } from 'pino';

import { eventLoop } from '../../src/common/ticks.js';
import { parseSettings, type Settings } from '../../src/config/settings.js';
import { openAccess } from '../../src/http/auth/access.js';
import { Turns } from '../../src/http/routes/bulk/turns.js';
import { createHttpApp, type HttpParts } from '../../src/http/routes/routes.js';
import { LatelyRefused } from '../../src/http/deciding/lately-refused.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import { withoutRules } from '../../src/rules/rules.js';
import { createMetrics } from '../../src/metrics/prometheus-metrics.js';
import { holdToDocument } from './openapi/held-to-document.js';

/** Of the apps that are the service. */
const settingsOf = new WeakMap<Express, Settings>();

/** The HTTP surface over a limiter of the test's own, with everything else as by default. */
export function httpAppOver(limiter: Limiter, parts: Partial<HttpParts> = {}): Express {
  const settings = parts.settings ?? parseSettings({});
  const rules = withoutRules(settings);
  const metrics = createMetrics(() => limiter.waiting, rules);
  const app = createHttpApp(
    {
      limiter,
      policyOf: (key) => rules.current.policyOf(key),
      rules,
      metrics,
      undecided: { note: (reason) => metrics.failed(reason) },
      lately: new LatelyRefused(),
      replica: 'replica',
      readiness: { assess: () => Promise.resolve({ reasons: [], remarks: [] }) },
      access: openAccess(),
      turns: new Turns(eventLoop),
      settings,
      logger: pino({ level: 'silent' }),
      ...parts,
    },
    { limiting: true, debugging: true, metrics: true, documents: true },
  );
  settingsOf.set(app, settings);
  return app;
}

/** By default they are 511. The operating system lets others knock again a second later, or three, or seven. */
const MOST_CONNECTIONS_AT_ONCE = 2048;

/** An Express app that is served on a free port. */
export interface ServedApp {
  readonly url: string;
  /** Resolves when the answer to the next request is out or cut, and all who follow it know. */
  answerCloses(): Promise<void>;
  /** Resolves when the last request has been answered. */
  close(): Promise<void>;
}

export async function serve(app: Express): Promise<ServedApp> {
  const server = createServer(app);
  server.listen({ port: 0, host: '127.0.0.1', backlog: MOST_CONNECTIONS_AT_ONCE });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const settings = settingsOf.get(app);
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
