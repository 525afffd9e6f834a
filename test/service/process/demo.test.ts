import { readdirSync, readFileSync } from 'node:fs';

import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';
import {
  type DemoEvent,
  judge,
  picture,
  recording,
  screenLines,
} from '../../support/demo/demo-modules.js';
import {
  type DemoRun,
  endDemos,
  isRunning,
  startDemo,
  startedPids,
} from '../../support/demo/demo-run.js';
import { xmlProblem } from '../../support/demo/well-formed-xml.js';

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

describe('the verdict', () => {
  const isApproval = ({ event }: DemoEvent): boolean => event === 'approved';
  const change = (index: number, changes: Partial<DemoEvent>): DemoEvent[] =>
    recording.map((event, i) => (i === index ? { ...event, ...changes } : event));
  const first = recording.findIndex(isApproval);

  test('finds no problem in the recorded run', () => {
    expect(judge(recording).problems).toEqual([]);
  });

  test('finds an approval out of turn', () => {
    const swapped = change(first, { client: 2 });
    swapped[first + 1] = { ...recording[first + 1]!, client: 1 };
    expect(judge(swapped).problems).toEqual(['client 1 was approved after client 2']);
  });

  test('finds a second approval', () => {
    const twice = [...recording, recording.findLast(isApproval)!];
    expect(judge(twice).problems).toContainEqual(
      expect.stringMatching(/^client \d+ was approved twice$/),
    );
  });

  test('finds a window over the maximum, and its unexplained approval', () => {
    const window = recording.findIndex(({ event }) => event === 'window');
    expect(judge(change(window, { approved: 4 })).problems).toEqual([
      '4 were approved in window 1',
      'Redis counts 34 approvals, and 33 are known',
    ]);
  });

  test('finds a client that was lost at a living replica', () => {
    const lost = recording.findIndex(({ event }) => event === 'lost');
    expect(judge(change(lost, { replica: 'A' })).problems).toEqual([
      expect.stringMatching(/^client \d+ lost its connection to replica A$/),
    ]);
  });

  test('finds a client without an answer, and a client that is not approved', () => {
    const last = recording.findLastIndex(isApproval);
    expect(judge(recording.toSpliced(last, 1)).problems).toContain('1 clients got no answer');
    expect(judge(change(last, { event: 'notApproved', status: 503 })).problems).toContainEqual(
      expect.stringMatching(/^client \d+ was answered with 503$/),
    );
  });

  test('finds that nobody waited at the killed replica', () => {
    const alone = recording.filter(({ event }) => event !== 'lost');
    expect(judge(alone).problems).toEqual(['no client waited at the replica that was killed']);
  });

  test('finds that no replica was killed', () => {
    const unharmed = recording.filter(({ event }) => event !== 'killed');
    expect(judge(unharmed).problems).toContain('no replica was killed');
  });
});

test('the picture in a terminal fits 80 x 24 at any time', () => {
  for (let count = 1; count <= recording.length; count += 1) {
    const events = recording.slice(0, count);
    const millis = Number(events.at(-1)!.millis ?? 0);
    const lines = screenLines(events, millis);
    // The cursor needs the last line.
    expect(lines.length).toBeLessThan(24);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(80);
  }
});

describe('docs/images/demo.svg', () => {
  const svg = readFileSync(new URL('../../../docs/images/demo.svg', import.meta.url), 'utf8');

  test('is the picture that `npm run demo:picture` draws of the recorded run', () => {
    expect(picture(recording)).toBe(svg);
  });

  test('is well-formed and small, and needs nothing else', () => {
    expect(xmlProblem(svg)).toBeUndefined();
    expect(svg).toContain('<title');
    expect(svg).toContain('<desc');
    expect(svg.length).toBeLessThan(60_000);
    expect(svg).not.toMatch(/<script|href|url\(|@import|@font-face/);
  });

  test.each(['<a><b></a></b>', '<a>', '<a/><a/>', '<a b=c/>', '<a>&</a>', 'a<b/>', '<a b="<"/>'])(
    'would not be well-formed as %s',
    (xml) => {
      expect(xmlProblem(xml)).toBeDefined();
    },
  );

  test('is not drawn of a run with a problem', () => {
    const unharmed = recording.filter(({ event }) => event !== 'killed');
    expect(() => picture(unharmed)).toThrow('no replica was killed');
  });
});
