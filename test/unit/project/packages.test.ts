import { readFileSync } from 'node:fs';

import { parse } from 'yaml';

import { settingsSchema } from '../../../src/config/settings.js';

interface Lock {
  readonly packages: Readonly<
    Record<
      string,
      {
        readonly version?: string;
        readonly integrity?: string;
        readonly dev?: boolean;
        readonly hasInstallScript?: boolean;
      }
    >
  >;
}

const LOCK_FILES = [
  'package-lock.json',
  'scripts/compiler/package-lock.json',
  'bench/package-lock.json',
];

function packagesOf(file: string): Lock['packages'] {
  return (JSON.parse(readFileSync(file, 'utf8')) as Lock).packages;
}

test.each(LOCK_FILES)('every package of %s has a checksum', (file) => {
  const packages = Object.entries(packagesOf(file)).filter(([path]) => path !== '');

  expect(packages.length).toBeGreaterThan(0);
  expect(packages.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([]);
});

test('only two harmless packages run a script when Sluice is installed', () => {
  const withScript = Object.entries(packagesOf('package-lock.json'))
    .filter(([, { dev, hasInstallScript }]) => !dev && hasInstallScript)
    .map(([path]) => path);
  const { scarfSettings } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    scarfSettings: unknown;
  };

  // The first would report each installation to its makers, but package.json switches this off. The second
  // reads how the package that depends on it writes its version.
  expect(withScript).toEqual(['node_modules/@scarf/scarf', 'node_modules/protobufjs']);
  expect(scarfSettings).toEqual({ enabled: false });
});

test('the compiler of `npm start` is the one that checks the types', () => {
  const [checks, compiles] = LOCK_FILES.map(
    (file) => packagesOf(file)['node_modules/typescript']?.version,
  );

  expect(compiles).toBeDefined();
  expect(compiles).toBe(checks);
});

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
