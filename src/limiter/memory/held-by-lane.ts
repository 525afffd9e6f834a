/** Held approvals: their hits, and how many they are. */
export interface Held {
  readonly hits: number;
  readonly size: number;
}

const NOTHING: Held = { hits: 0, size: 0 };

/** What is held in each lane of a key. */
export class HeldByLane {
  readonly #lanes = new Map<string, Held>();

  /** This number of hits and of approvals more is held in a lane. */
  add(lane: string, hits: number, size: number): void {
    const before = this.#lanes.get(lane) ?? NOTHING;
    this.#lanes.set(lane, { hits: before.hits + hits, size: before.size + size });
  }

  /** What is held in some lanes together. */
  of(lanes: readonly string[]): Held {
    return lanes
      .map((lane) => this.#lanes.get(lane) ?? NOTHING)
      .reduce((sum, { hits, size }) => ({ hits: sum.hits + hits, size: sum.size + size }), NOTHING);
  }
}
