import { Agent } from 'node:http';

import { parseSettings } from '../../../src/config/settings.js';
import { MAX_BODY_BYTES } from '../../../src/http/intake/json-array.js';
import { ApprovalLedger } from '../../support/monitor/approval-ledger.js';
import { releaseMany, sendBody } from '../../support/bulk-client.js';
import { describeWithNginx } from '../../support/describe-with-nginx.js';
import { send } from '../../support/http-client.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { type Answer, type Asked, isExpected, Load, type Sort } from '../load.js';
import { Balancer, killBalancers, type Passed } from '../rolling/balancer.js';
import { shippedConfiguration } from '../rolling/balancer-configuration.js';
import { readDeployment } from '../rolling/deployment.js';
import { Rollout } from '../rolling/rollout.js';
import { Service } from '../rolling/service.js';

/** The cluster's times are multiplied by this. */
const SCALE = 0.4;
/** How long a cluster may take to stop sending requests to a pod that is to end. */
const ENDPOINTS_DELAY_MILLIS = 1000 * SCALE;
const REPLICAS = 3;
const WINDOW_MILLIS = 500;
/** On a busy machine. */
const ROLLED_OUT_WITHIN_MILLIS = 180_000;

const SORTS: readonly Sort[] = [
  { key: uniqueKey(), maxRequests: 20, canWait: false, clients: 4 },
  { key: uniqueKey(), maxRequests: 20, canWait: false, clients: 4 },
  { key: uniqueKey(), maxRequests: 20, canWait: true, clients: 12 },
  // A client of this key waits for 20 windows, longer than a stopping replica allows.
  { key: uniqueKey(), maxRequests: 2, canWait: true, clients: 40 },
];
/** Clients on kept connections that ask again at once, so that one is always about to ask when a connection ends. */
const KEPT: Sort = { key: uniqueKey(), maxRequests: 1_000_000, canWait: false, clients: 30 };

/** The name that some clients here use for the service. The balancer passes it on. */
const BEHIND = { ALLOWED_HOSTS: 'sluice' };

const folder = useTemporaryFolder();
const redis = useRedis();
afterAll(async () => {
  await killBalancers();
  await killReplicas();
});

function deploymentHere() {
  const { terminationGraceMillis, shutdownDelayMillis, shutdownGraceMillis, ...counts } =
    readDeployment();
  return {
    ...counts,
    terminationGraceMillis: terminationGraceMillis * SCALE,
    shutdownDelayMillis: shutdownDelayMillis * SCALE,
    shutdownGraceMillis: shutdownGraceMillis * SCALE,
  };
}

describeWithNginx('a rolling update under load', () => {
  let load: Load | undefined;
  let kept: Load | undefined;
  let service: Service;
  let rollout: Rollout;
  let balancer: Balancer;
  let first: readonly ReplicaProcess[];
  let asked: readonly Asked[];
  let passed: ReadonlyMap<string, Passed>;
  const ledgers: ApprovalLedger[] = [];
  /** An upper bound of the number of windows. */
  let windows: number;

  beforeAll(async () => {
    const deployment = deploymentHere();
    expect(deployment).toMatchObject({ maxSurge: 1, maxUnavailable: 0 });
    const start = (): Promise<ReplicaProcess> =>
      startReplica({
        ...BEHIND,
        REDIS_URL: redis.url,
        WINDOW_MILLIS: String(WINDOW_MILLIS),
        SHUTDOWN_DELAY_MILLIS: String(deployment.shutdownDelayMillis),
        SHUTDOWN_GRACE_MILLIS: String(deployment.shutdownGraceMillis),
        // The test is not about the speed of a busy machine.
        STORE_TIMEOUT_MILLIS: '30000',
        // So long that no lease ends during the test.
        REPLICA_LEASE_MILLIS: '3600000',
      });
    for (const { key, maxRequests } of SORTS) {
      ledgers.push(await ApprovalLedger.open(redis.client, key, maxRequests));
    }
    first = await Promise.all(Array.from({ length: REPLICAS }, start));
    const urls = first.map(({ url }) => url);
    balancer = await Balancer.start(folder, urls);
    service = new Service(urls);
    rollout = new Rollout(
      { deployment, endpointsDelayMillis: ENDPOINTS_DELAY_MILLIS, balancer, service, start },
      first,
    );
    const startedAt = performance.now();
    // nginx closes kept connections at a reload, which may cross with a request, so these clients keep none.
    load = new Load(balancer.url, SORTS, { agent: () => new Agent({ maxSockets: 1 }) });
    kept = new Load(urls[0]!, [KEPT], { agent: () => service.agent(), pauseMillis: 1 });
    try {
      await rollout.run();
    } finally {
      await Promise.all([load.stop(), kept.stop()]);
      for (const ledger of ledgers) await ledger.close();
    }
    windows = Math.ceil((performance.now() - startedAt) / WINDOW_MILLIS) + 1;
    asked = load.asked;
    await balancer.stop();
    passed = balancer.account();
  }, ROLLED_OUT_WITHIN_MILLIS);

  afterAll(async () => {
    await killBalancers();
    await Promise.all([load?.stop(), kept?.stop()]);
  });

  test('answers every request', () => {
    expect(asked.filter(({ failure }) => failure)).toEqual([]);
    for (const sort of SORTS) expect(answersTo(sort)).not.toEqual([]);
  });

  test('fails no request on a kept connection', () => {
    const requests = kept!.asked;
    const replicas = [...first, ...rollout.replicas].map(({ url }) => new URL(url).host);

    expect([...service.connectedTo].sort()).toEqual(replicas.sort());
    expect(requests.filter(({ onUsedConnection }) => onUsedConnection).length).toBeGreaterThan(
      REPLICAS * KEPT.clients,
    );
    expect(requests.filter(({ answer }) => answer?.status !== 200)).toEqual([]);
  });

  test('approves, denies, or fails with the time to come back', () => {
    const unexpected = answers().filter((answer) => !isExpected(answer));

    expect(balancer.complaints()).toEqual([]);
    expect(unexpected).toEqual([]);
  });

  test('turns away only waiters at a stopping replica', () => {
    const turnedAway = asked.filter(({ answer }) => answer?.status === 503);
    const stopped = rollout.ended.map(({ replica }) => new URL(replica.url).host);

    expect(turnedAway.length).toBeGreaterThan(0);
    for (const { sort, answer, correlationId } of turnedAway) {
      expect(sort.canWait).toBe(true);
      expect(answer?.body.error).toBe('shutting down');
      expect(stopped).toContain(passed.get(correlationId)?.endpoint);
    }
  });

  test('exceeds no limit, and keeps the order of waiters', () => {
    for (const [i, sort] of SORTS.entries()) {
      const { approved, violations } = ledgers[i]!;
      const ids = answersTo(sort).flatMap(({ body }) => body.request_id ?? []);

      expect(violations).toEqual([]);
      expect(approved.length).toBeLessThanOrEqual(windows * sort.maxRequests);
      expect(ids.length).toBeGreaterThan(0);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.filter((id) => !approved.includes(id))).toEqual([]);
    }
  });

  test('ends every old replica in time and in good order', () => {
    expect(rollout.ended.map(({ replica }) => replica)).toEqual(first);
    for (const { replica, code } of rollout.ended) {
      expect(code).toBe(0);
      expect(replica.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
      expect(replica.stderr).toBe('');
    }
  });

  test('uses every replica', () => {
    const served = new Set([...passed.values()].map(({ endpoint }) => endpoint));
    const replicas = [...first, ...rollout.replicas].map(({ url }) => new URL(url).host);

    expect(rollout.replicas).toHaveLength(REPLICAS);
    expect([...served].sort()).toEqual(replicas.sort());
  });

  function answers(): Answer[] {
    return asked.flatMap(({ answer }) => answer ?? []);
  }

  function answersTo(sort: Sort): Answer[] {
    return asked.flatMap((one) => (one.sort === sort ? (one.answer ?? []) : []));
  }
});

describeWithNginx('nginx with deploy/nginx.conf', () => {
  test('passes on bulk requests with the largest body that a replica accepts', async () => {
    const replica = await startReplica(BEHIND);
    const balancer = await Balancer.start(folder, [replica.url]);
    const key = uniqueKey();
    const body = JSON.stringify([{ key }]).padEnd(MAX_BODY_BYTES);
    const checked = await sendBody(balancer.url, 'POST', body);

    expect(checked.status).toBe(200);
    const [{ request_id: id }] = checked.json() as [{ request_id: string }];
    const released = await releaseMany(balancer.url, [{ key, request_id: id }]);
    expect(released).toMatchObject([{ status: 200 }]);
  });
});

describe('deploy/nginx.conf', () => {
  test('closes an idle connection before the replica does', async () => {
    const replica = await startReplica(BEHIND);
    const answer = await send(replica.url, 'GET', '/healthz', { Connection: 'keep-alive' });
    const [, seconds] = /^timeout=(\d+)/.exec(String(answer.headers['keep-alive'])) ?? [];

    const upstream = /upstream replicas \{(.*?)\n {2}\}/s.exec(shippedConfiguration())![1]!;
    expect(Number(seconds) * 1000).toBeGreaterThan(millisOf('keepalive_timeout', upstream));
  });

  test('gives waiters more time than the longest wait takes', () => {
    const settings = parseSettings({});
    const windows = 1 + settings.MAX_REQUESTS_IN_QUEUE / settings.MAX_REQUESTS;

    const given = millisOf('proxy_read_timeout', shippedConfiguration());
    expect(given).toBeGreaterThan(settings.WINDOW_MILLIS * windows);
  });
});

/** The time that a directive of nginx sets. Throws if there is none with a single unit. */
function millisOf(directive: string, configuration: string): number {
  const found = new RegExp(`^\\s*${directive} (\\d+)(ms|s|m|h);`, 'm').exec(configuration);
  if (!found) throw new Error(`no ${directive}`);
  const [, amount, unit] = found;
  return (
    Number(amount) * { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit as 'ms' | 's' | 'm' | 'h']
  );
}
