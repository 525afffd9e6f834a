import type { Waiter } from './waiter.js';

/** So many answers hold the event loop for about a millisecond. */
const SLICE = 32;

interface Approval {
  readonly waiter: Waiter;
  readonly giveBack: () => void;
}

/**
 * Tells waiters that their turn has come: at once, but for no more than a slice of them in one turn
 * of the event loop. When thousands are approved together, the first are answered before the last
 * have been told, and other requests come in between. Told in one go, 10,000 held the event loop for
 * hundreds of milliseconds.
 */
export class ApprovalsInSlices {
  #pending: Approval[] = [];
  #toldInThisTurn = 0;

  /** @param giveBack called where the waiter's client has left */
  approve(waiter: Waiter, giveBack: () => void): void {
    this.#pending.push({ waiter, giveBack });
    if (this.#toldInThisTurn === 0) this.#continueNextTurn();
    if (this.#toldInThisTurn < SLICE) this.#tell(1);
  }

  #continueNextTurn(): void {
    setImmediate(() => {
      this.#toldInThisTurn = 0;
      if (this.#pending.length === 0) return;
      this.#continueNextTurn();
      this.#tell(SLICE);
    });
  }

  #tell(count: number): void {
    const slice = this.#pending.splice(0, count);
    this.#toldInThisTurn += slice.length;
    for (const { waiter, giveBack } of slice) if (!waiter.approveFromQueue()) giveBack();
  }
}
