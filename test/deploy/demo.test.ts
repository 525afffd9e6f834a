import { readdirSync } from 'node:fs';

import {
  type DemoRun,
  endDemos,
  isRunning,
  startDemo,
  startedPids,
} from '../support/demo/demo-run.js';
import { describeWithRedisProgram } from '../support/describe-with-redis-program.js';
import { extent } from '../support/extent.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { until } from '../support/until.js';

const CLIENTS = extent(9, 12);
const WINDOW_MILLIS = 3000;
const MAX_REQUESTS = 3;

describeWithRedisProgram('npm run demo', () => {
  const folder = useTemporaryFolder();
  afterEach(endDemos);

  /** The first group's text in each line that matches, in their order. */
  const inLines = ({ lines }: DemoRun, pattern: RegExp): string[] =>
    lines.flatMap((line) => pattern.exec(line)?.[1] ?? []);

  test('approves all clients in order, also the clients of the killed replica', async () => {
    const options = ['--clients', String(CLIENTS), '--window-millis', String(WINDOW_MILLIS)];
    const demo = startDemo(folder, ...options);
    expect(await demo.ended).toBe(0);

    const approved = inLines(demo, / client (\d+) is approved/).map(Number);
    const lost = inLines(demo, / client (\d+) loses its connection to replica B$/).map(Number);
    const returned = inLines(demo, / client (\d+) comes back, at replica [AC]$/).map(Number);
    const ofKilled = inLines(demo, / client (\d+) waits at replica B$/).map(Number);
    expect(approved).toEqual(Array.from({ length: CLIENTS }, (_, i) => i + 1));
    expect(ofKilled).toEqual(expect.arrayContaining(lost));
    expect(lost.length).toBeGreaterThan(0);
    expect(returned).toEqual(lost);
    const windows = inLines(demo, / window (\d+): /);
    expect(windows).toEqual([...new Set(windows)]);
    const counts = inLines(demo, / window \d+: (\d+) approved$/).map(Number);
    expect(Math.max(...counts)).toBe(MAX_REQUESTS);
    expect(inLines(demo, /(replica B is killed)/)).toHaveLength(1);
    expect(demo.lines.at(-1)).toMatch(
      new RegExp(
        `^verdict: all ${CLIENTS} approved in their order, at most 3 in each of \\d+ windows, ` +
          `none twice; ${lost.length} of them came back after replica B was killed$`,
      ),
    );
  });

  test.each(['SIGINT', 'SIGTERM'] as const)('leaves nothing behind on %s', async (signal) => {
    const demo = startDemo(folder);
    await demo.printed('client 3 waits');
    const pids = startedPids(demo);
    expect(pids).toHaveLength(4);
    expect(pids.filter(isRunning)).toEqual(pids);
    expect(readdirSync(folder)).toHaveLength(1);

    demo.signal(signal);
    expect(await demo.ended).toBe(signal === 'SIGINT' ? 130 : 143);
    await until(() => pids.every((pid) => !isRunning(pid)));
    expect(readdirSync(folder)).toEqual([]);
  });

  test('says which option is wrong', async () => {
    const demo = startDemo(folder, '--clients', '31');
    await expect(demo.printed('client 1 waits')).rejects.toThrow(
      '--clients: got "31", takes a whole number from 9 to 30',
    );
    expect(await demo.ended).toBe(1);
  });
});
