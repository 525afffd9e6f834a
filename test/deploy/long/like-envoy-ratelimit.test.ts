import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { stringify } from 'yaml';

import {
  type ConfiguredDescriptor,
  type DomainLimits,
  parseLimitsFile,
} from '../../../src/import/envoy-ratelimit/limits-file.js';
import { rulesOfLimits } from '../../../src/import/envoy-ratelimit/rules-of-limits.js';
import type { RateLimitResponse } from '../../../src/grpc/messages.js';
import { Random } from '../../support/chaos/random.js';
import { useGrpcApps } from '../../support/grpc-app.js';
import { type Asked, type AskedDescriptor, useGateways } from '../../support/grpc-gateway.js';
import { limitByEnvoy } from '../../support/import/envoy-lookup.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';
import {
  ENVOY_RATELIMIT,
  isEarlyInMinute,
  killEnvoyRatelimit,
  startEnvoyRatelimit,
} from '../grpc/envoy-ratelimit.js';

const CONFIGURATIONS = [
  'examples/ratelimit/config/config.yaml',
  'examples/ratelimit/config/example.yaml',
  'test/config/basic_config.yaml',
  'test/config/shadowmode_config.yaml',
  'test/config/wildcard.yaml',
];
const REQUESTS = 200;
const UNLIMITED = 1_000_000_000;

/** The descriptors that a configuration limits, and others like them. */
function drawDescriptor(
  random: Random,
  configured: readonly ConfiguredDescriptor[],
): AskedDescriptor {
  const entries = [];
  let level = configured;
  do {
    const { key, value, descriptors } = random.pick(level);
    const other = random.pick(['u', 'v', 'w']);
    entries.push({
      key,
      value: random.chance(0.7) ? (value ?? other).replaceAll('*', other) : other,
    });
    level = descriptors ?? [];
  } while (level.length > 0 && random.chance(0.9));
  return { entries };
}

function limitOf(configured: readonly ConfiguredDescriptor[], entries: AskedDescriptor['entries']) {
  return limitByEnvoy(
    configured,
    entries.map(({ key, value = '' }) => ({ key, value })),
  );
}

/** Whether a descriptor has no limit, or one that a rule can express: see docs/from-envoy-ratelimit.md. */
function hasCounterpart(
  configured: readonly ConfiguredDescriptor[],
  entries: AskedDescriptor['entries'],
): boolean {
  const limit = limitOf(configured, entries);
  return !limit?.replaces && limit?.name === undefined && !limit?.isQuota;
}

/** What both services show of an answer. */
function shown({ overall_code: code, statuses }: RateLimitResponse) {
  return {
    code,
    statuses: statuses.map(({ code: ofStatus, current_limit: limit, limit_remaining: left }) => {
      // Envoy's service says nothing of what is not limited. Sluice has a limit that nobody reaches.
      if (!limit || limit.requests_per_unit === UNLIMITED) return 'not limited';
      // A denied call takes nothing: what it took of other keys before is given back, or was never asked for.
      if (code === 'OVER_LIMIT' && ofStatus !== code) return 'not denied';
      return [ofStatus, limit.requests_per_unit, limit.unit, left];
    }),
  };
}

(ENVOY_RATELIMIT === '' ? describe.skip : describe)("Envoy's rate limit service and Sluice", () => {
  const folder = useTemporaryFolder();
  const startSluice = useGrpcApps();
  const gatewayOf = useGateways();
  afterEach(killEnvoyRatelimit);

  test.each(CONFIGURATIONS)('decide alike by %s', async (name) => {
    const text = await readFile(join(dirname(ENVOY_RATELIMIT), name), 'utf8');
    // A second ends within the test.
    const yaml = text.replaceAll('unit: second', 'unit: hour');
    const file = parseLimitsFile(yaml, name);
    const [{ domain, descriptors: configured }] = file.domains as [DomainLimits];
    const theirs = gatewayOf({ grpcPort: await startEnvoyRatelimit(folder, yaml) });
    const rules = join(folder, 'rules.yaml');
    await writeFile(rules, stringify({ keys: rulesOfLimits([file]).rules }));
    const template = { GRPC_KEY_TEMPLATE: '{domain}:{entries}', CONFIG_FILE: rules };
    const ours = gatewayOf(await startSluice(template));

    const random = new Random(1);
    const differences: object[] = [];
    const codes = new Set<string>();
    await until(isEarlyInMinute);
    for (let i = 0; i < REQUESTS; i += 1) {
      const drawn = Array.from({ length: random.whole(1, 3) }, () =>
        drawDescriptor(random, configured),
      );
      // In Envoy's service a limit in shadow mode that is reached keeps those of other descriptors from being counted.
      const alone = drawn.find(({ entries }) => limitOf(configured, entries)?.isShadow);
      // Of two that are the same, Envoy's service counts the first even if it denies the second.
      const descriptors = [
        ...new Map((alone ? [alone] : drawn).map((one) => [JSON.stringify(one), one])).values(),
      ].filter(({ entries }) => hasCounterpart(configured, entries));
      if (descriptors.length === 0) continue;
      const asked: Asked = { domain, descriptors };
      const answers = [shown(await theirs.ask(asked)), shown(await ours.ask(asked))];
      codes.add(answers[0]!.code);
      if (JSON.stringify(answers[0]) !== JSON.stringify(answers[1])) {
        differences.push({ descriptors: JSON.stringify(descriptors), answers });
      }
    }
    expect(differences).toEqual([]);
    expect(codes).toContain('OK');
  });
});
