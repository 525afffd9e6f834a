import { decodeRequest } from './message-codec.js';
import type { RateLimitRequest } from './messages.js';

/** The message of a call as it arrived. It is decoded when its slice begins, and not kept by a call that waits. */
export class CallMessage {
  #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get length(): number {
    return this.#bytes.length;
  }

  /**
   * Decodes the message, and drops its bytes.
   * @throws UnreadableMessage
   */
  take(): RateLimitRequest {
    const bytes = this.#bytes;
    this.#bytes = Buffer.of();
    return decodeRequest(bytes);
  }
}
