import type { Limiter } from '../../src/limiter/limiter.js';
import { smallLimiter } from './http-service.js';

/** A limiter whose list of keys has begun, and goes on when the test ends it or lets it fail. */
export function limiterWithSlowList() {
  const limiter: Limiter = smallLimiter();
  let end!: () => void;
  let fail!: (error: Error) => void;
  const ended = new Promise<void>((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  limiter.list = async function* () {
    yield [];
    await ended;
  };
  return { limiter, end, fail };
}
