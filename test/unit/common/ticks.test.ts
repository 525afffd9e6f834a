import { executionAsyncResource } from 'node:async_hooks';

import { keepTickShape } from '../../../src/common/ticks.js';

test('the kept object has the shape of the one that Node makes for each tick', async () => {
  const kept = await keepTickShape();
  const another = await new Promise<object>((resolve) => {
    process.nextTick(() => {
      resolve(executionAsyncResource());
    });
  });
  expect(another).not.toBe(kept);
  expect(Reflect.ownKeys(kept)).toEqual(Reflect.ownKeys(another));
});
