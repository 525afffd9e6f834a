import { randomUUID } from 'node:crypto';

import { KEYS, NAMES } from './step.js';

/** A record may be forgotten this long after its last change: three of the shortest windows. */
const REMEMBERED_MILLIS = 90;

/** The request ids that callers have chosen. An id is replaced where the limiters may forget it at different times. */
export class ChosenIds {
  /** Of each key and each of its names, and when its record may have changed last. */
  readonly #ids = Array.from({ length: KEYS * NAMES }, () => ({ id: randomUUID(), usedAt: 0 }));

  /** How many ids each key has had. */
  readonly counts = Array.from({ length: KEYS }, () => 0);

  /** The id for a check that is sent now. @param isOver whether it is to be replaced in any case */
  use(now: number, key: number, name: number, isOver: (id: string) => boolean): string {
    const chosen = this.#ids[key * NAMES + name]!;
    const isForgotten = now >= chosen.usedAt + REMEMBERED_MILLIS;
    if (isForgotten || isOver(chosen.id)) {
      chosen.id = randomUUID();
      this.counts[key]! += 1;
      // A later check with the id may change nothing, as one with other hits.
      chosen.usedAt = now;
    }
    return chosen.id;
  }

  /** The record of an id may change, or has changed. */
  noteUse(now: number, id: string): void {
    const chosen = this.#ids.find((each) => each.id === id);
    if (chosen) chosen.usedAt = now;
  }

  /** Whether both limiters know what has become of an id. */
  isRemembered(now: number, id: string): boolean {
    const chosen = this.#ids.find((each) => each.id === id);
    return chosen !== undefined && now < chosen.usedAt + REMEMBERED_MILLIS;
  }

  /** The ids of a key of which both limiters know what has become. */
  remembered(now: number, key: number): string[] {
    const ofKey = this.#ids.slice(key * NAMES, (key + 1) * NAMES);
    return ofKey.map(({ id }) => id).filter((id) => this.isRemembered(now, id));
  }
}
