import { loadScript } from '../../../src/redis/scripts/script-loader.js';
import type { Scripts } from './schedule.js';

/** Short texts that a replica loads as its scripts, and the real scripts, which Redis gets. */
export interface StandIns {
  readonly texts: Scripts;
  /** By text and by digest. */
  readonly real: ReadonlyMap<unknown, string>;
}

/** What a replica loads too, though no schedule calls it. */
const NEVER_CALLED = ['examine', 'holders', 'inspect', 'peek', 'report'];

const known = new WeakMap<Scripts, StandIns>();

/** To put the real scripts together for each replica would take half of the time of a simulation. */
export function standInsFor(scripts: Scripts): StandIns {
  const before = known.get(scripts);
  if (before) return before;
  const texts = Object.fromEntries(
    [...Object.keys(scripts), ...NEVER_CALLED].map((name) => [name, `-- ${name}`]),
  );
  const real = new Map<unknown, string>();
  for (const name of Object.keys(scripts)) {
    const [from, to] = [loadScript(name, texts), loadScript(name, scripts)];
    real.set(from.text, to.text).set(from.sha1, to.sha1);
  }
  const standIns = { texts, real };
  known.set(scripts, standIns);
  return standIns;
}
