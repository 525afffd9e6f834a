import { appendFileSync, cpSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { extent } from '../../support/extent.js';
import { asServer } from '../../support/forget-scripts.js';
import { knownScripts, luaFiles } from '../../support/known-scripts.js';
import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { requestRate } from '../../support/rate-client.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const PACKAGE = fileURLToPath(new URL('../../../', import.meta.url));
const PARTS = ['dist', 'lua', 'proto', 'ui', 'package.json'];
const ADDITION = '\n-- another version\n';
/** The load goes on for so long, and until both versions have called their scripts. */
const LOAD_MILLIS = extent(2_000, 10_000);
const CALLED = ['check', 'release', 'settle'];
const CLIENTS = 24;
const KEYS = 3;
const MAXIMUM = 5;

describe('two versions of Sluice with different scripts', () => {
  const redis = useRedis();
  const folder = useTemporaryFolder();
  let replicas: ReplicaProcess[];

  beforeAll(async () => {
    for (const part of PARTS) cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
    symlinkSync(join(PACKAGE, 'node_modules'), join(folder, 'node_modules'));
    for (const file of luaFiles()) appendFileSync(join(folder, 'lua', `${file}.lua`), ADDITION);
    const environment = {
      REDIS_URL: redis.url,
      MAX_REQUESTS: String(MAXIMUM),
      WINDOW_MILLIS: '200',
      MAX_REQUESTS_IN_QUEUE: '10',
      // So long that a busy machine does not look like an outage.
      STORE_TIMEOUT_MILLIS: '30000',
    };
    replicas = await Promise.all([startReplica(environment), startReplica(environment, folder)]);
  });
  afterAll(killReplicas);

  /** Checks, waits and releases, at both versions in turn. */
  async function load(client: number, key: string, isOver: () => boolean): Promise<void> {
    for (let round = client; !isOver(); round += 1) {
      const { url } = replicas[round % 2]!;
      const query = client % 4 === 0 ? '' : 'canWait=true';
      const { status, requestId } = await requestRate(url, key, query).answer;
      expect([200, 429]).toContain(status);
      if (requestId === undefined || client % 2 === 0) continue;
      // The other version releases it.
      const other = replicas[(round + 1) % 2]!;
      const released = await fetch(`${other.url}/rate/${key}/${requestId}`, { method: 'DELETE' });
      // Its window may have ended.
      expect([200, 404]).toContain(released.status);
    }
  }

  test('keep limits and the order of queues on one Redis', async () => {
    const keys = Array.from({ length: KEYS }, uniqueKey);
    const ledgers = await Promise.all(
      keys.map((key) => ApprovalLedger.open(redis.client, key, MAXIMUM)),
    );
    const server = asServer(redis.client);
    const hasCalled = async (texts: Record<string, string>): Promise<boolean> => {
      const known = await knownScripts(server, texts);
      return CALLED.every((name) => known.includes(name));
    };
    const endsAt = performance.now() + LOAD_MILLIS;
    let isOver = false;
    const loads = Promise.all(
      Array.from({ length: CLIENTS }, (_, i) => load(i, keys[i % KEYS]!, () => isOver)),
    );
    await until(
      async () =>
        performance.now() > endsAt && (await hasCalled({})) && (await hasCalled(anotherVersion())),
    ).finally(() => (isOver = true));
    await loads;
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    for (const ledger of ledgers) {
      expect(ledger.violations).toEqual([]);
      expect(ledger.served.length).toBeGreaterThan(0);
      expect(ledger.served).toEqual(ledger.joined);
    }
  });
});

/** The texts of the other version. */
function anotherVersion(): Record<string, string> {
  return Object.fromEntries(
    luaFiles().map((file) => {
      const text = readFileSync(join(PACKAGE, 'lua', `${file}.lua`), 'utf8');
      return [file, text + ADDITION];
    }),
  );
}
