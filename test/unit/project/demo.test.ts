import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** An event in a run of the demo. */
type DemoEvent = Readonly<Record<string, unknown>> & { readonly event: string };

const FOLDER = new URL('../../../scripts/demo/', import.meta.url);

/** The events of the run that docs/images/demo.svg shows. */
const recording: readonly DemoEvent[] = readFileSync(new URL('recording.jsonl', FOLDER), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as DemoEvent);

// The scripts are plain JavaScript, so their types are declared here.
const { judge } = (await load('verdict.mjs')) as {
  readonly judge: (events: readonly DemoEvent[]) => { problems: string[]; summary: string };
};
const { screenLines } = (await load('screen-lines.mjs')) as {
  readonly screenLines: (events: readonly DemoEvent[], millis: number) => string[];
};
const { picture } = (await load('picture.mjs')) as {
  readonly picture: (events: readonly DemoEvent[]) => string;
};
const { linePrinter } = (await load('sentences.mjs')) as {
  readonly linePrinter: (print: (line: string) => void) => (event: DemoEvent) => void;
};
export { judge, linePrinter, picture, screenLines };

async function load(file: string): Promise<unknown> {
  return import(fileURLToPath(new URL(file, FOLDER)));
}

// test/deploy/demo.test.ts runs the demo.

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
});

test('each window is printed once, when it is full or over', () => {
  const printed: string[] = [];
  const show = linePrinter((line) => printed.push(line));
  const windows = [
    [1, 3],
    [2, 0],
    [2, 1],
    [2, 3],
    [2, 3],
    [3, 1],
    [4, 1],
    // It is looked at again.
    [3, 2],
    [4, 2],
  ] as const;
  for (const [window, approved] of windows) show({ event: 'window', window, approved });
  show({ event: 'judged', summary: 'verdict' });
  expect(printed).toEqual([
    'window 1: 3 approved',
    'window 2: 3 approved',
    'window 3: 2 approved',
    'window 4: 2 approved',
    'verdict',
  ]);
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

  test('is not drawn of a run with a problem', () => {
    const unharmed = recording.filter(({ event }) => event !== 'killed');
    expect(() => picture(unharmed)).toThrow('no replica was killed');
  });
});
