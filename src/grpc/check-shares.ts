/** The most checks that the store is asked for at a time, by one caller and in all. */
const MAX_OF_CALLER = 1000;
const MAX_IN_ALL = 4000;

interface Share {
  underWay: number;
  /** What begins each check that waits. */
  readonly waiting: (() => void)[];
}

/**
 * Shares the store among callers whose calls have several descriptors. Checks beyond a share wait; callers
 * are served one after the other.
 */
export class CheckShares {
  #underWay = 0;
  readonly #shares = new Map<string, Share>();
  /** The shares of callers that wait, in the order in which they are served. */
  readonly #queue = new Set<Share>();

  /** Runs `ask`, which decides a check, as soon as the caller's share allows. */
  async run<T>(caller: string, ask: () => Promise<T>): Promise<T> {
    const share = this.#shareOf(caller);
    await this.#enter(share);
    try {
      return await ask();
    } finally {
      this.#underWay -= 1;
      share.underWay -= 1;
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

  #enter(share: Share): Promise<void> {
    return new Promise((go) => {
      share.waiting.push(go);
      this.#queue.add(share);
      this.#letGo();
    });
  }

  #letGo(): void {
    for (const share of this.#queue) {
      if (this.#underWay >= MAX_IN_ALL) return;
      if (share.underWay >= MAX_OF_CALLER) continue;
      const go = share.waiting.shift();
      this.#queue.delete(share);
      if (!go) continue;
      // The caller's next check comes after those of all others.
      if (share.waiting.length > 0) this.#queue.add(share);
      share.underWay += 1;
      this.#underWay += 1;
      go();
    }
  }
}
