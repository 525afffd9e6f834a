import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as tick, setTimeout as delay } from 'node:timers/promises';

import type { Random } from '../chaos/random.js';
import { ResponseReader } from './response-reader.js';

/** Ways to end a connection: FIN after the requests, RST, or both sides at once. */
export type Parting = 'half-close' | 'reset' | 'destroy';

/** A connection on which bytes are sent as they are, in pieces. */
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
    // A reset is one of the ways to be closed.
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#isClosed = true;
        // One that ends with the connection is cut by the client that gives the connection up.
        if (!this.#hasParted) reader.end();
        this.#changed();
        resolve();
      });
    });
  }

  /** Sends in pieces, with ticks of both event loops between. */
  async send(bytes: string, random: Random): Promise<void> {
    this.sent += bytes;
    const cuts = Array.from({ length: random.pick([0, 0, 1, 2, 5]) }, () =>
      random.whole(0, bytes.length),
    ).sort((a, b) => a - b);
    let start = 0;
    for (const end of [...cuts, bytes.length]) {
      if (this.socket.writable) this.socket.write(bytes.slice(start, end), 'latin1');
      if (start > 0) await (random.chance(0.3) ? delay(1) : tick());
      start = end;
    }
  }

  /** Sends in one piece what the other side may close the connection over. */
  sendWhole(bytes: string): void {
    this.sent += bytes;
    if (this.socket.writable) this.socket.write(bytes, 'latin1');
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when there are so many answers, or there will be no more; to whether there are. */
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
    // Node sends no RST while there is something to write, the FIN included, and never closes then.
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
