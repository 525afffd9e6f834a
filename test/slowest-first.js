import TestSequencer from '@jest/test-sequencer';

/** Files that take longest, the longest first. A fresh clone knows no times, and the last file would run alone. */
const SLOWEST = [
  'test/long/chaos-sentinel.test.ts',
  'test/long/chaos-cluster.test.ts',
  'test/deploy/long/long-waits.test.ts',
  'test/service/chaos/standalone.test.ts',
  'test/service/chaos/quick-returning.test.ts',
  'test/service/chaos/quick-soak.test.ts',
  'test/redis/lua/invariants.test.ts',
  'test/redis/simulation/planted-faults.test.ts',
  'test/service/chaos/quick-recovery.test.ts',
  'test/service/topologies/lost-functions.test.ts',
  'test/service/docs/shell-blocks.test.ts',
  'test/service/replicas/held-slots.test.ts',
  'test/service/replicas/lost-messages.test.ts',
  'test/service/process/stop.test.ts',
  'test/service/replicas/crash.test.ts',
  'test/service/client/lost-permits.test.ts',
  'test/service/client/with-permit.test.ts',
  'test/service/client/cli/signals.test.ts',
  'test/service/client/cli/command-lines.test.ts',
  'test/service/client/cli/run.test.ts',
  'test/service/tracing/spans.test.ts',
  'test/service/replicas/approved-once.test.ts',
  'test/service/process/rules-file.test.ts',
  'test/service/replicas/short-stall.test.ts',
  'test/service/replicas/key-history.test.ts',
  'test/redis/simulation/simulation.test.ts',
  'test/service/process/demo.test.ts',
  'test/service/http/transport-limits.test.ts',
  'test/service/grpc/stop.test.ts',
  'test/service/grpc/account.test.ts',
  'test/service/fuzz/http-surface.test.ts',
  'test/deploy/python-command-line.test.ts',
  'test/deploy/python-client.test.ts',
  'test/deploy/python-recipes.test.ts',
  'test/deploy/gateways/gateways.test.ts',
  'test/deploy/docker/composition.test.ts',
  'test/deploy/tutorial.test.ts',
  'test/deploy/gateways/envoy.test.ts',
  'test/deploy/commands.test.ts',
  'test/deploy/schemathesis.test.ts',
  'test/deploy/dashboard/list.test.ts',
  'test/deploy/docs-page/docs-page.test.ts',
  'test/deploy/helm.test.ts',
  'test/deploy/dashboard/access-for-all.test.ts',
  'test/deploy/long/rolling-update.test.ts',
  'test/deploy/dashboard/detail.test.ts',
  'test/deploy/python-client.test.ts',
  'test/deploy/grpc/python-client.test.ts',
  'test/deploy/python-client-replicas.test.ts',
  'test/deploy/go-client.test.ts',
  'test/deploy/dashboard/lost-files.test.ts',
  'test/deploy/chart-test.test.ts',
  'test/deploy/chart-values.test.ts',
  'test/deploy/client-package.test.ts',
  'test/deploy/generated-clients/generated-clients.test.ts',
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
