import TestSequencer from '@jest/test-sequencer';

/** Files that take longest, the longest first. A fresh clone knows no times, and the last file would run alone. */
const SLOWEST = [
  'test/docs/shell-blocks.test.ts',
  'test/chaos/soak/quick-soak.test.ts',
  'test/chaos/recovery/quick-recovery.test.ts',
  'test/replicas/approved-once.test.ts',
  'test/chaos/quick/sentinel.test.ts',
  'test/chaos/quick/cluster.test.ts',
  'test/chaos/quick/standalone.test.ts',
  'test/simulation/simulation.test.ts',
  'test/deploy/schemathesis.test.ts',
  'test/deploy/gateways/gateways.test.ts',
  'test/deploy/gateways/envoy.test.ts',
  'test/deploy/installed-package.test.ts',
  'test/grpc/stop.test.ts',
  'test/grpc/account.test.ts',
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
