import type { Limiter } from '../../src/limiter/limiter.js';

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
