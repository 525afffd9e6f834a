import { httpError } from '../replies/http-error.js';

/** As many bytes as requests may take that are held, by all connections of a port. */
const BYTES_IN_ALL = 64 * 1024 * 1024;

/** Bounds the bytes of all bodies that are kept at a time: any number of connections may send some. */
export class BodyRoom {
  #left = BYTES_IN_ALL;

  /**
   * Does `work` with a body of so many bytes, which is forgotten in the end.
   * @throws HttpError NO_ROOM_FOR_BODY
   */
  async hold(bytes: number, work: () => Promise<void>): Promise<void> {
    if (bytes > this.#left) throw httpError('NO_ROOM_FOR_BODY', {});
    this.#left -= bytes;
    try {
      await work();
    } finally {
      this.#left += bytes;
    }
  }
}
