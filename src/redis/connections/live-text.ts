/**
 * A text that may change. ioredis passes the object itself from options to options and from client to client, and
 * converts it to a string whenever it sends it.
 */
export class LiveText {
  constructor(private readonly read: () => string) {}

  toString(): string {
    return this.read();
  }
}
