import type { Limiter } from '../../src/limiter/limiter.js';
import { smallLimiter } from './http-service.js';

/** A limiter that records the keys of its checks, and decides them when `isReady` has resolved. */
export function watchedLimiter(isReady = Promise.resolve()): {
  limiter: Limiter;
  asked: readonly string[];
} {
  const limiter = smallLimiter();
  const check = limiter.check.bind(limiter);
  const asked: string[] = [];
  limiter.check = async (...args) => {
    asked.push(args[0].key);
    await isReady;
    return check(...args);
  };
  return { limiter, asked };
}

/** A limiter that records the keys of its checks, and decides nothing until it is unblocked. */
export function blockedLimiter() {
  let unblock!: () => void;
  const unblocked = new Promise<void>((resolve) => (unblock = resolve));
  return { ...watchedLimiter(unblocked), unblock };
}
