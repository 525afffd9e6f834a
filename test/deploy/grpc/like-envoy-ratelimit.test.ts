import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { stringify } from 'yaml';

import {
  type ConfiguredDescriptor,
  parseLimitsFile,
} from '../../../src/import/envoy-ratelimit/limits-file.js';
import { rulesOfLimits } from '../../../src/import/envoy-ratelimit/rules-of-limits.js';
import type { RateLimitResponse } from '../../../src/grpc/messages.js';
import { Random } from '../../support/chaos/random.js';
import { freePort } from '../../support/free-port.js';
import { useGrpcApps } from '../../support/grpc-app.js';
import {
  type Asked,
  type AskedDescriptor,
  type Gateway,
  useGateways,
} from '../../support/grpc-gateway.js';
import { limitByEnvoy } from '../../support/import/envoy-lookup.js';
import { startRedisProcess, stopRedisProcesses } from '../../support/redis-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';

/** `ratelimit`, built in a checkout of https://github.com/envoyproxy/ratelimit as of f2fb157, or ''. */
const PROGRAM = process.env.SLUICE_TEST_ENVOY_RATELIMIT ?? '';

/** How the benchmark starts it. */
interface PeerModule {
  readonly programs: Readonly<
    Record<
      'envoy-ratelimit',
      {
        readonly launch: (parts: object) => {
          readonly environment: Readonly<Record<string, string | number>>;
          /** The only one has the limits. */
          readonly files: Readonly<Record<string, string>>;
        };
      }
    >
  >;
}

const peer = '../../../bench/peers/envoy-ratelimit.mjs';
const { programs } = (await import(peer)) as PeerModule;
const { launch } = programs['envoy-ratelimit'];

const CONFIGURATIONS = [
  'examples/ratelimit/config/config.yaml',
  'examples/ratelimit/config/example.yaml',
  'test/config/basic_config.yaml',
  'test/config/shadowmode_config.yaml',
  'test/config/wildcard.yaml',
];
const REQUESTS = 200;
const UNLIMITED = 1_000_000_000;
/** The windows of Envoy's service are the minutes of the clock. The requests take a few seconds. */
const LATEST_SECOND = 40;

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

/** Whether a descriptor has no limit, or one that a rule can express: see docs/envoy-ratelimit.md. */
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

(PROGRAM === '' ? describe.skip : describe)("Envoy's rate limit service and Sluice", () => {
  const folder = useTemporaryFolder();
  const startSluice = useGrpcApps();
  const gatewayOf = useGateways();
  let other: ChildProcess;

  /** Starts the other service with a configuration. Windows are those of the clock there. */
  async function startOther(yaml: string): Promise<Gateway> {
    const redis = await startRedisProcess({
      configure: () => ['user default on nopass ~* &* +@all'],
    });
    const [grpcPort, port, debugPort] = [await freePort(), await freePort(), await freePort()];
    const { environment, files } = launch({
      port,
      sparePorts: [grpcPort, debugPort],
      folder,
      redis,
      limit: 1,
    });
    for (const file of Object.keys(files)) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), yaml);
    }
    const texts = Object.entries(environment).map(([name, value]) => [name, String(value)]);
    other = spawn(PROGRAM, [], {
      env: {
        ...(Object.fromEntries(texts) as Record<string, string>),
        // So that a denied request counts nothing, as in Sluice.
        STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
      },
      stdio: 'ignore',
    });
    await until(() =>
      fetch(`http://127.0.0.1:${port}/healthcheck`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    return gatewayOf({ grpcPort });
  }
  afterEach(async () => {
    other.kill('SIGKILL');
    await once(other, 'exit');
    await stopRedisProcesses();
  });

  test.each(CONFIGURATIONS)('decide alike by %s', async (name) => {
    const text = await readFile(join(dirname(PROGRAM), name), 'utf8');
    // A second ends within the test.
    const yaml = text.replaceAll('unit: second', 'unit: hour');
    const file = parseLimitsFile(yaml, name);
    const theirs = await startOther(yaml);
    const rules = join(folder, 'rules.yaml');
    await writeFile(rules, stringify({ keys: rulesOfLimits([file]).rules }));
    const template = { GRPC_KEY_TEMPLATE: '{domain}:{entries}', CONFIG_FILE: rules };
    const ours = gatewayOf(await startSluice(template));

    const random = new Random(1);
    const differences: object[] = [];
    const codes = new Set<string>();
    await until(() => new Date().getSeconds() < LATEST_SECOND);
    for (let i = 0; i < REQUESTS; i += 1) {
      const drawn = Array.from({ length: random.whole(1, 3) }, () =>
        drawDescriptor(random, file.descriptors),
      );
      // In Envoy's service a limit in shadow mode that is reached keeps those of other descriptors from being counted.
      const alone = drawn.find(({ entries }) => limitOf(file.descriptors, entries)?.isShadow);
      // Of two that are the same, Envoy's service counts the first even if it denies the second.
      const descriptors = [
        ...new Map((alone ? [alone] : drawn).map((one) => [JSON.stringify(one), one])).values(),
      ].filter(({ entries }) => hasCounterpart(file.descriptors, entries));
      if (descriptors.length === 0) continue;
      const asked: Asked = { domain: file.domain, descriptors };
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
