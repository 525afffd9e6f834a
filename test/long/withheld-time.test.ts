import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';

import { until } from '../support/until.js';
import { WithheldTime } from '../support/chaos/withheld-time.js';

const BUSY = 'while (true);';
const IDLE = 'process.stdin.resume(); process.stdout.write("idle");';
const SPAN_MILLIS = 1000;
const onLinux = existsSync('/proc/self/schedstat') ? test : test.skip;

onLinux(
  'what the machine withholds from a replica with work to do is noticed, and not from an idle one',
  async () => {
    // More busy processes than processors: each goes without one for a part of the time.
    const busy = Array.from({ length: 2 * availableParallelism() }, () =>
      spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }),
    );
    const idle = spawn(process.execPath, ['-e', IDLE], { stdio: ['pipe', 'pipe', 'ignore'] });
    // Its start is work.
    await once(idle.stdout, 'data');
    const startedAt = Date.now();
    const withheld = new WithheldTime(() => [
      { index: 0, process: { pid: busy[0]!.pid! } },
      { index: 1, process: { pid: idle.pid! } },
    ]);
    try {
      const most = (index: number, from = startedAt): number =>
        withheld.mostWithin(index, from, Date.now(), SPAN_MILLIS);
      await until(() => most(0) > SPAN_MILLIS / 4);
      expect(most(1)).toBeLessThan(most(0));
      expect(withheld.mostWithin(0, 0, startedAt - 2 * SPAN_MILLIS, SPAN_MILLIS)).toBe(0);
    } finally {
      withheld.stop();
      for (const child of [...busy, idle]) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    }
  },
);
