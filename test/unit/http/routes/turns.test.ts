import { Turns } from '../../../../src/http/routes/bulk/turns.js';

/** Ticks that come when the test says so, and the turns that they bring. */
function manualTurns() {
  const due: (() => void)[] = [];
  const turns = new Turns({ next: (callback) => void due.push(callback) });
  const grants: [name: string, granted: number][] = [];
  /** A call with so many elements, which takes every turn that it gets. */
  const begin = async (name: string, elements: number): Promise<void> => {
    for (let left = elements; left > 0;) {
      const granted = await turns.next(left);
      grants.push([name, granted]);
      left -= granted;
    }
  };
  /** What was granted since the last tick, which ends then. */
  const endTick = async (): Promise<[string, number][]> => {
    await new Promise((resolve) => setImmediate(resolve));
    for (const callback of due.splice(0)) callback();
    return grants.splice(0);
  };
  return { begin, endTick, isIdle: () => due.length === 0 };
}

test('a call that is alone has its turn at once', async () => {
  const { begin, endTick, isIdle } = manualTurns();
  await begin('a', 50);

  expect(await endTick()).toEqual([['a', 50]]);
  await endTick();
  expect(isIdle()).toBe(true);
});

test('no tick deals with more than 200 elements, of how many calls soever', async () => {
  const { begin, endTick } = manualTurns();
  void begin('large', 1000);
  for (const name of ['a', 'b', 'c']) void begin(name, 80);

  expect(await endTick()).toEqual([['large', 200]]);
  expect(await endTick()).toEqual([
    ['a', 80],
    ['b', 80],
    ['c', 40],
  ]);
  expect(await endTick()).toEqual([['large', 200]]);
  expect(await endTick()).toEqual([
    ['c', 40],
    ['large', 160],
  ]);
  expect(await endTick()).toEqual([['large', 200]]);
  expect(await endTick()).toEqual([['large', 200]]);
  expect(await endTick()).toEqual([['large', 40]]);
});

test('calls that come meanwhile wait behind those that wait', async () => {
  const { begin, endTick } = manualTurns();
  void begin('a', 300);
  void begin('b', 100);
  expect(await endTick()).toEqual([['a', 200]]);
  void begin('c', 100);

  expect((await endTick()).map(([name]) => name)).toEqual(['b', 'a']);
  expect(await endTick()).toEqual([['c', 100]]);
});
