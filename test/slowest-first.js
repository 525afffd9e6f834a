import TestSequencer from '@jest/test-sequencer';

/** Files that take longest, the longest first. A fresh clone knows no times, and the last file would run alone. */
const SLOWEST = [
  'test/long/chaos-sentinel.test.ts',
  'test/long/chaos-cluster.test.ts',
  'test/deploy/long/long-waits.test.ts',
  'test/long/planted-faults.test.ts',
  'test/long/soak.test.ts',
  'test/redis/behaviour/both-limiters-agree.test.ts',
  'test/service/process/stop.test.ts',
  'test/service/replicas/three-replicas.test.ts',
  'test/service/process/start.test.ts',
  'test/deploy/replicas/short-stall.test.ts',
  'test/service/client/cli/run.test.ts',
  'test/service/http/connections.test.ts',
  'test/service/grpc/waiting.test.ts',
  'test/service/grpc/stream-bounds.test.ts',
  'test/service/chaos/standalone.test.ts',
  'test/deploy/recipes.test.ts',
  'test/service/client/with-permit.test.ts',
  'test/service/replicas/fleet.test.ts',
  'test/service/docs/shell-blocks.test.ts',
  'test/deploy/dashboard/dashboard.test.ts',
  'test/deploy/python-client.test.ts',
  'test/deploy/docker/composition.test.ts',
  'test/deploy/gateways/envoy.test.ts',
  'test/deploy/topologies/cluster.test.ts',
  'test/deploy/topologies/sentinel.test.ts',
];

/** The slowest files first, then the others as Jest has them. */
export default class SlowestFirst extends TestSequencer {
  sort(tests) {
    const place = ({ path }) => {
      const found = SLOWEST.findIndex((slow) => path.endsWith(slow));
      return found === -1 ? SLOWEST.length : found;
    };
    return super.sort(tests).sort((a, b) => place(a) - place(b));
  }
}
