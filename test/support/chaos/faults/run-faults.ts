import { setTimeout as delay } from 'node:timers/promises';

import type { Random } from '../random.js';
import { within } from '../within.js';
import type { Fault, FaultKind, FaultRecord } from './fault.js';

/** How often a second fault begins while the first lasts, where their scopes allow it. */
const SECOND_FAULT = 0.3;
/** Long enough for a failover and for the cluster to settle on it. */
const MENDED_WITHIN_MILLIS = 60_000;

interface Planned {
  readonly name: string;
  readonly fault: Fault;
  readonly afterMillis: number;
}

/**
 * Has faults happen one after the other, and two at a time now and then, until `millis` are over. Each
 * kind comes once before any comes again. The seed decides the faults, their order, targets and lengths. How many
 * faults happen depends on how fast their damage is repaired.
 */
export async function runFaults(
  kinds: readonly FaultKind[],
  random: Random,
  millis: number,
): Promise<FaultRecord[]> {
  const records: FaultRecord[] = [];
  const endsAt = performance.now() + millis;
  for (const step of steps(kinds, random)) {
    await delay(random.whole(100, 700));
    if (performance.now() >= endsAt) break;
    const results = await Promise.allSettled(step.map((planned) => happen(planned, records)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }
  return records;
}

function* steps(kinds: readonly FaultKind[], random: Random): Generator<Planned[]> {
  let bag: FaultKind[] = [];
  const drawNext = (): { name: string; fault: Fault } => {
    if (bag.length === 0) bag = random.shuffled(kinds);
    const kind = bag.pop()!;
    return { name: kind.name, fault: kind.draw(random) };
  };
  for (;;) {
    const first = drawNext();
    const step = [{ ...first, afterMillis: 0 }];
    if (random.chance(SECOND_FAULT)) {
      const second = drawNext();
      const afterMillis = random.whole(0, first.fault.millis);
      if (second.fault.scope !== first.fault.scope) step.push({ ...second, afterMillis });
    }
    yield step;
  }
}

async function happen(
  { name, fault, afterMillis }: Planned,
  records: FaultRecord[],
): Promise<void> {
  await delay(afterMillis);
  const { target, stops, isolates, silencesRedis, loses, moves } = fault;
  const record = {
    name,
    target,
    ...(stops && { stops }),
    ...(isolates && { isolates }),
    ...(silencesRedis && { silencesRedis }),
    ...(loses && { loses }),
    ...(moves && { moves }),
    beganAt: Date.now(),
    endedAt: Infinity,
  };
  records.push(record);
  await within(MENDED_WITHIN_MILLIS, `${name} (${target}) to happen and be mended`, async () => {
    await fault.begin();
    await delay(fault.millis);
    await fault.end();
  });
  record.endedAt = Date.now();
}
