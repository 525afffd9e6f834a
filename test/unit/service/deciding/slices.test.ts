import { Slices } from '../../../../src/service/deciding/slices.js';

/** Slices with ticks that the test ends, and a clock that calls move forward. */
function manualSlices(millisPerElement = 1 / 256) {
  const due: (() => void)[] = [];
  let now = 0;
  const slices = new Slices({ next: (callback) => void due.push(callback) }, () => now);
  let dealt: string[] = [];
  /** Begins a call with `elements` elements, which uses every slice that it gets. */
  const begin = async (name: string, elements: number, owner = name): Promise<void> => {
    const request = { owner };
    for (let left = elements; left > 0;) {
      const count = await slices.next(request, left);
      dealt.push(...Array<string>(count).fill(name));
      now += count * millisPerElement;
      left -= count;
    }
  };
  /** Ends the tick. @returns the call of each element that was handled in it */
  const endTick = async (): Promise<string[]> => {
    await new Promise((resolve) => setImmediate(resolve));
    for (const callback of due.splice(0)) callback();
    const names = dealt;
    dealt = [];
    return names;
  };
  return { begin, endTick, isIdle: () => due.length === 0 };
}

test('a single call gets its slices at once', async () => {
  const { begin, endTick, isIdle } = manualSlices();
  await begin('a', 50);

  expect(await endTick()).toHaveLength(50);
  await endTick();
  expect(isIdle()).toBe(true);
});

test.each([
  [1 / 256, 256],
  [1 / 16, 16],
  // The number of elements between two looks at the clock.
  [20, 4],
])('at %f ms for each element a tick handles %i, of any number of calls', async (millis, most) => {
  const { begin, endTick, isIdle } = manualSlices(millis);
  for (const name of ['a', 'b', 'c', 'd']) void begin(name, 200);

  const counts: number[] = [];
  while (!isIdle()) counts.push((await endTick()).length);
  expect(counts.reduce((sum, count) => sum + count)).toBe(800);
  // The first tick has one more slice for each call, since the calls begin together.
  expect(counts[0]).toBeLessThanOrEqual(most + 4);
  expect(Math.max(...counts.slice(1))).toBe(most);
});

test('calls share a tick', async () => {
  const { begin, endTick } = manualSlices();
  void begin('a', 1000);
  void begin('b', 1000);
  void begin('c', 10);
  await endTick();

  const names = await endTick();
  const [a, b] = ['a', 'b'].map((name) => names.filter((each) => each === name).length);
  expect([a, b]).toEqual([128, 128]);
});

test('a new call waits behind the calls that already wait', async () => {
  const { begin, endTick } = manualSlices(20);
  void begin('a', 12);
  void begin('b', 12);
  await endTick();
  void begin('c', 4);

  const first: (string | undefined)[] = [];
  for (let tick = 0; tick < 4; tick += 1) first.push((await endTick())[0]);
  expect(first).toEqual(['a', 'b', 'a', 'c']);
});

test('callers are served one after the other, however many requests one of them has', async () => {
  const { begin, endTick } = manualSlices(20);
  for (const name of ['a1', 'a2', 'a3']) void begin(name, 8, 'a');
  void begin('b', 8);

  const first: (string | undefined)[] = [];
  for (let tick = 0; tick < 7; tick += 1) first.push((await endTick())[0]);
  expect(first).toEqual(['a1', 'b', 'a3', 'b', 'a1', 'a2', 'a3']);
});
