import TestSequencer from '@jest/test-sequencer';

/** Files that take longest, the longest first. A fresh clone knows no times, and the last file would run alone. */
const SLOWEST = [
  'test/long/chaos-sentinel.test.ts',
  'test/long/chaos-cluster.test.ts',
  'test/chaos/quick/standalone.test.ts',
  'test/chaos/soak/quick-soak.test.ts',
  'test/simulation/planted-faults.test.ts',
  'test/chaos/recovery/quick-recovery.test.ts',
  'test/docs/shell-blocks.test.ts',
  'test/replicas/lost-messages.test.ts',
  'test/process/stop.test.ts',
  'test/replicas/crash.test.ts',
  'test/tracing/spans.test.ts',
  'test/replicas/approved-once.test.ts',
  'test/process/rules-file.test.ts',
  'test/replicas/short-stall.test.ts',
  'test/simulation/simulation.test.ts',
  'test/process/demo.test.ts',
  'test/http/transport-limits.test.ts',
  'test/deploy/schemathesis.test.ts',
  'test/deploy/gateways/gateways.test.ts',
  'test/deploy/gateways/envoy.test.ts',
  'test/deploy/installed-package.test.ts',
  'test/grpc/stop.test.ts',
  'test/grpc/account.test.ts',
  'test/fuzz/http-surface.test.ts',
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
