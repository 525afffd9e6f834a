import { until } from './until.js';

test('the first result of a probe that is neither false nor undefined is returned', async () => {
  const outcomes = [false, undefined, 0, 1];
  expect(await until(() => outcomes.shift() as number | false | undefined)).toBe(0);
  expect(outcomes).toEqual([1]);
});

test('a probe that fails is not called again', async () => {
  let asked = 0;
  const probe = (): Promise<boolean> => {
    asked += 1;
    return Promise.reject(new Error('no state'));
  };
  await expect(until(probe)).rejects.toThrow('no state');
  expect(asked).toBe(1);
});

test('the error of a timeout shows the probe and the waiting code', async () => {
  const arrived = false;
  const waited = until(() => arrived, 1).catch((error: unknown) => error as Error);
  const { message, stack } = (await waited) as Error;
  expect(message).toBe('waited 1 ms for () => arrived');
  expect(stack).toContain('until.test.ts');
});
