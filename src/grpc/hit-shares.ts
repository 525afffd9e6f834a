/**
 * The most hits that the store is asked for at a time, by one caller and in all. 1,000 hits block Redis for 3 ms at
 * most.
 */
const MAX_OF_CALLER = 1000;
const MAX_IN_ALL = 4000;

interface Waiting {
  readonly hits: number;
  readonly go: () => void;
}

interface Share {
  underWay: number;
  readonly waiting: Waiting[];
}

/** Shares the store among callers whose calls ask for many hits. Hits beyond a share wait; callers take turns. */
export class HitShares {
  #underWay = 0;
  readonly #shares = new Map<string, Share>();
  /** The shares of callers that wait, in the order of their turns. */
  readonly #queue = new Set<Share>();

  /**
   * Runs `ask` when the caller's share has room.
   * @param hits no more than the share of a caller
   */
  async run<T>(caller: string, hits: number, ask: () => Promise<T>): Promise<T> {
    const share = this.#shareOf(caller);
    await this.#enter(share, hits);
    try {
      return await ask();
    } finally {
      this.#underWay -= hits;
      share.underWay -= hits;
      this.#letGo();
      if (share.underWay === 0 && share.waiting.length === 0) this.#shares.delete(caller);
    }
  }

  #shareOf(caller: string): Share {
    let share = this.#shares.get(caller);
    if (!share) {
      share = { underWay: 0, waiting: [] };
      this.#shares.set(caller, share);
    }
    return share;
  }

  #enter(share: Share, hits: number): Promise<void> {
    return new Promise((go) => {
      share.waiting.push({ hits, go });
      this.#queue.add(share);
      this.#letGo();
    });
  }

  #letGo(): void {
    for (const share of this.#queue) {
      const [next] = share.waiting;
      if (!next || share.underWay + next.hits > MAX_OF_CALLER) continue;
      // A share that needs more than is free is not overtaken.
      if (this.#underWay + next.hits > MAX_IN_ALL) return;
      share.waiting.shift();
      this.#queue.delete(share);
      // The caller's next turn comes after those of all others.
      if (share.waiting.length > 0) this.#queue.add(share);
      share.underWay += next.hits;
      this.#underWay += next.hits;
      next.go();
    }
  }
}
