import type { Random } from '../chaos/random.js';
import type { SimulatedClient } from './client.js';
import type { World } from './world.js';

/** What makes kept places outlive their connections, or their replicas. Worlds with kept places have more of it. */
export const ENDS_OF_CONNECTIONS = ['leave', 'kill', 'freeze', 'stop'] as const;

/** Draws for how long places are kept, and for how long their checks wait for answers. */
export class DrawnKeeps {
  constructor(
    private readonly random: Random,
    private readonly world: World,
  ) {}

  /** What a check that can wait says, whose caller has chosen the id. @param before what an earlier one has said */
  words(before?: Pick<SimulatedClient, 'keepMillis'>): string[] {
    const { random } = this;
    if (!random.chance(before && before.keepMillis === undefined ? 0.1 : 0.85)) return [];
    const millis = before?.keepMillis ?? this.#millis();
    const words = [`keep=${random.chance(0.8) ? millis : this.#millis()}`];
    if (random.chance(0.3)) words.push(`answer=${random.whole(0, 2) * this.#millis()}`);
    return words;
  }

  /** From less than a timer's delay to more than a window or a lease. */
  #millis(): number {
    const { random, world } = this;
    const { leaseMillis } = world.shape;
    return random.pick([
      random.whole(1, 20),
      random.whole(20, 400),
      random.pick(world.rules.windows),
      random.whole(leaseMillis, 2 * leaseMillis),
    ]);
  }
}
