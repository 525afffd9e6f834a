import type { Slices, SliceTaker } from './slices.js';

/** What is done with the elements of a bulk request. */
export interface BulkWork {
  readonly taker: SliceTaker;
  readonly slices: Pick<Slices, 'next'>;
  /** Deals with the element at an index. Throws, or calls one of the callbacks, once. */
  deal(index: number, onDone: () => void, onFailed: (error: unknown) => void): void;
  /** Takes the error of an element that could not be dealt with. */
  fail(index: number, error: unknown): void;
  /** Whether more elements may begin. Those that have begun go on. */
  mayBegin(): boolean;
}

/**
 * Deals with the elements of a bulk request, in their order, as fast as the slices allow. A failure of one element does
 * not affect the others.
 * @returns when every element that began is dealt with
 */
export function inBulk(count: number, work: BulkWork): Promise<void> {
  // Promises of the elements would cost a bulk request of 50 a third of its time.
  return new Promise((resolve) => {
    /** The elements that have begun and are not dealt with, and one more until all have begun. */
    let pending = 1;
    const settled = (): void => {
      pending -= 1;
      if (pending === 0) resolve();
    };
    const deal = (index: number): void => {
      const fail = (error: unknown): void => {
        work.fail(index, error);
        settled();
      };
      try {
        work.deal(index, settled, fail);
      } catch (error) {
        fail(error);
      }
    };
    const begin = async (): Promise<void> => {
      for (let begun = 0; begun < count && work.mayBegin();) {
        const end = begun + (await work.slices.next(work.taker, count - begun));
        pending += end - begun;
        for (; begun < end; begun += 1) deal(begun);
      }
      settled();
    };
    void begin();
  });
}
