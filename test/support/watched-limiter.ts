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

/**
 * Makes a limiter withhold its first decisions until the test lets them go.
 * @param most how many
 */
export function withholdDecisions(limiter: Limiter, most = Infinity) {
  const check = limiter.check.bind(limiter);
  let tell!: () => void;
  const told = new Promise<void>((resolve) => (tell = resolve));
  let decided = 0;
  limiter.check = async (...args) => {
    const decision = await check(...args);
    decided += 1;
    if (decided <= most) await told;
    return decision;
  };
  return { tell, decided: () => decided };
}
