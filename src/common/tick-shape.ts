import { executionAsyncResource } from 'node:async_hooks';

let lastTick: object | undefined;

/**
 * Keeps one object of `process.nextTick` alive, and with it the shape that V8 has learnt of them.
 *
 * The garbage collection of an idle process drops a shape that no object has. Node then makes each of these objects, of
 * which a request takes several, by V8's slowest way, for as long as it lives: a check took a tenth more of a core.
 * @returns that object, when there is one
 */
export function keepTickShape(): Promise<object> {
  return new Promise((resolve) => {
    process.nextTick(() => {
      lastTick = executionAsyncResource();
      resolve(lastTick);
    });
  });
}
