import { readFileSync } from 'node:fs';

import { parse } from 'yaml';

import { settingsSchema } from '../../../src/config/settings.js';

interface Service {
  readonly restart?: string;
  readonly environment?: Readonly<Record<string, string | number | null>>;
}

const { services } = parse(readFileSync('docker-compose.yml', 'utf8')) as {
  readonly services: Readonly<Record<'redis' | 'sluice' | 'balancer', Service>>;
};

/** What the file itself decides: its ports, its Redis, no memory of its own, and no TLS behind the balancer. */
const FIXED = /^(HOST|PORT|ADMIN_PORT|GRPC_\w+|REDIS_\w+|TLS_\w+|MAX_KEYS|CONFIG_FILE)$/;

test('every setting of the environment reaches the replicas of docker-compose.yml', () => {
  const { environment = {} } = services.sluice;
  const taken = Object.entries(environment)
    .filter(([name, value]) => value === null || String(value).startsWith(`\${${name}:`))
    .map(([name]) => name);
  const settings = Object.keys(settingsSchema.shape).filter((name) => !FIXED.test(name));
  expect(taken.sort()).toEqual(settings.sort());
});

test('every service of docker-compose.yml is started again when it ends', () => {
  expect(Object.values(services).map(({ restart }) => restart)).toEqual(
    Object.keys(services).map(() => 'unless-stopped'),
  );
});
