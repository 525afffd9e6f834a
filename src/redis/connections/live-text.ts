/**
 * A text that may change. ioredis hands it around as it is, from options to options and from client to client, and
 * makes a string of it whenever it sends it.
 */
export class LiveText {
  constructor(private readonly read: () => string) {}

  toString(): string {
    return this.read();
  }
}
