import { serviceError } from '../service/service-error.js';

const BYTES_IN_ALL = 64 * 1024 * 1024;
const BYTES_OF_CALLER = BYTES_IN_ALL / 4;
/** The memory of a call besides its message. */
const BYTES_OF_CALL = 16 * 1024;

/** Bounds the calls whose checks are not made yet, by the bytes of their messages: for each caller, and in all. */
export class CallBudget {
  #taken = 0;
  readonly #takenBy = new Map<string, number>();

  /**
   * Runs `work` for a call with a message of this size, whose bytes count until `work` ends.
   * @throws ServiceError NO_ROOM_FOR_BODY
   */
  async within<T>(caller: string, messageBytes: number, work: () => Promise<T>): Promise<T> {
    const bytes = messageBytes + BYTES_OF_CALL;
    const taken = this.#takenBy.get(caller) ?? 0;
    if (this.#taken + bytes > BYTES_IN_ALL || taken + bytes > BYTES_OF_CALLER) {
      throw serviceError('NO_ROOM_FOR_BODY', {});
    }
    this.#taken += bytes;
    this.#takenBy.set(caller, taken + bytes);
    try {
      return await work();
    } finally {
      this.#taken -= bytes;
      const left = (this.#takenBy.get(caller) ?? bytes) - bytes;
      if (left > 0) this.#takenBy.set(caller, left);
      else this.#takenBy.delete(caller);
    }
  }
}
