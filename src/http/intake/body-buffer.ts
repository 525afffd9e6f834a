import type { BodyMemory } from '../../service/callers/body-budget.js';
import { serviceError } from '../../service/service-error.js';

/** More than a bulk request of the most elements needs, with the longest keys and overrides. */
export const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Collects the bytes of a body in one piece of memory. A list of chunks would take a hundred times the body's bytes if
 * each chunk has one byte.
 */
export class BodyBuffer {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param announced how many bytes the sender has announced */
  constructor(
    private readonly memory: Pick<BodyMemory, 'take'>,
    private readonly announced = MAX_BODY_BYTES,
  ) {}

  /** @throws ServiceError BODY_TOO_LARGE or NO_ROOM_FOR_BODY */
  append(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (length > MAX_BODY_BYTES) throw tooLarge();
    if (length > this.#buffer.length) this.#grow(length, chunk);
    else chunk.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(length: number, chunk: Buffer): void {
    const before = this.#buffer;
    // Nearly all bodies come in one chunk, which is kept without a copy.
    const isFirst = before.length === 0;
    const doubled = Math.min(2 * before.length, this.announced);
    const size = isFirst ? length : Math.max(length, doubled);
    this.memory.take(size - before.length);
    // Not from Node's pool: a small piece of it would keep the whole pool in memory.
    this.#buffer = isFirst ? chunk : Buffer.allocUnsafeSlow(size);
    if (isFirst) return;
    before.copy(this.#buffer, 0, 0, this.#length);
    chunk.copy(this.#buffer, this.#length);
  }
}

export function tooLarge(): Error {
  return serviceError('BODY_TOO_LARGE', { max: MAX_BODY_BYTES });
}
