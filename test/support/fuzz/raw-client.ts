import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTick, setTimeout as delay } from 'node:timers/promises';

import type { Random } from '../chaos/random.js';
import { ResponseReader } from './response-reader.js';

/** Ways to end a connection: FIN after the requests, RST, or both sides at once. */
export type Parting = 'half-close' | 'reset' | 'destroy';

/** A connection on which raw bytes are sent in pieces. */
export class RawClient {
  /** Settles when both sides have closed. */
  readonly closed: Promise<void>;
  /** All that was sent, one character for each byte. */
  sent = '';
  #isClosed = false;
  #hasParted = false;
  #onChange: (() => void)[] = [];

  static async open(url: string, isHead?: (index: number) => boolean): Promise<RawClient> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    return new RawClient(socket, new ResponseReader(isHead));
  }

  private constructor(
    private readonly socket: Socket,
    readonly reader: ResponseReader,
  ) {
    socket.setEncoding('latin1').on('data', (text: string) => {
      reader.feed(text);
      this.#changed();
    });
    // The service may close the connection with a reset.
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#isClosed = true;
        // If this client parted, a body that ends with the connection may be cut.
        if (!this.#hasParted) reader.end();
        this.#changed();
        resolve();
      });
    });
  }

  /** Sends in pieces, with ticks of both event loops between them. */
  async send(bytes: string, random: Random): Promise<void> {
    this.sent += bytes;
    const cuts = Array.from({ length: random.pick([0, 0, 1, 2, 5]) }, () =>
      random.whole(0, bytes.length),
    ).sort((a, b) => a - b);
    let start = 0;
    for (const end of [...cuts, bytes.length]) {
      if (this.socket.writable) this.socket.write(bytes.slice(start, end), 'latin1');
      if (start > 0) await (random.chance(0.3) ? delay(1) : nextTick());
      start = end;
    }
  }

  /** Sends bytes in one piece, since the other side may close the connection because of them. */
  sendWhole(bytes: string): void {
    this.sent += bytes;
    if (this.socket.writable) this.socket.write(bytes, 'latin1');
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Waits for `count` answers, or until no more can come. Returns whether `count` answers have come. */
  async answers(count: number): Promise<boolean> {
    const { reader } = this;
    while (reader.responses.length < count && !this.#isClosed && reader.problem === undefined) {
      await new Promise<void>((resolve) => this.#onChange.push(resolve));
    }
    return reader.responses.length >= count;
  }

  async part(parting: Parting): Promise<void> {
    const { socket } = this;
    this.#hasParted = true;
    // Node sends no RST while data or a FIN is still to be written, and would never close then.
    const canReset = socket.writable && socket.writableLength === 0;
    if (parting === 'half-close') socket.end();
    else if (parting === 'reset' && canReset) socket.resetAndDestroy();
    else socket.destroy();
    await this.closed;
  }

  #changed(): void {
    for (const resolve of this.#onChange.splice(0)) resolve();
  }
}
