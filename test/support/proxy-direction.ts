import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { resetSocket } from './reset-socket.js';

type Mode = 'pass' | 'swallow' | 'pause';

const always = (): boolean => true;

/** One direction of all connections of a proxy. What it is told holds until it is told otherwise. */
export class ProxyDirection {
  #mode: Mode = 'pass';
  #delayMillis = 0;
  #isLate: () => boolean = always;
  #slowFrom: { readonly text: string; readonly millis: number } | undefined;
  #bytesIn = 0;
  #bytesOut = 0;
  #limit: { readonly bytes: number; readonly reached: () => void } | undefined;
  readonly #sources = new Set<Socket>();
  #lost: ReadonlySet<Socket> = new Set();

  /** The number of bytes taken so far, whether they passed or not. */
  get bytesIn(): number {
    return this.#bytesIn;
  }

  /** The number of bytes passed on so far. */
  get bytesOut(): number {
    return this.#bytesOut;
  }

  /** Passes everything on at once, and what a pause has held back. */
  pass(): void {
    this.#set('pass');
  }

  /**
   * Passes everything on in order, each byte `millis` after it has come.
   * @param isLate asked of each piece that comes; where not, it is no later than what came before it
   */
  delay(millis: number, isLate = always): void {
    this.#set('pass', millis, isLate);
  }

  /** The same for connections on which messages of pub/sub come, from the first one on. */
  delayMessages(millis: number): void {
    this.delayFrom('\r\nmessage\r\n', millis);
  }

  /** The same for connections on which `text` comes, from there on. */
  delayFrom(text: string, millis: number): void {
    this.#slowFrom = { text, millis };
  }

  /**
   * Takes everything and passes on nothing, not even that a side has closed. Connections that this was
   * done to have lost bytes: cut them before anything passes again.
   */
  swallow(): void {
    this.#set('swallow');
  }

  /** Passes on nothing more of the present connections, which are dead. Later ones work as usual. */
  lose(): void {
    this.#lost = new Set(this.#sources);
  }

  /** Reads no more, so that bytes stay with their sender until they pass again; none is lost. */
  pause(): void {
    this.#set('pause');
  }

  /**
   * Passes on so many bytes more; the connection that the next one comes from is reset, and the byte
   * lost. So a command runs, and its reply is lost, after `toClient.cutAfter(0)`.
   * @returns when a connection has been reset
   */
  cutAfter(bytes: number): Promise<void> {
    return new Promise((reached) => {
      this.#limit = { bytes: this.#bytesOut + bytes, reached };
    });
  }

  /** Adds a connection. */
  join(from: Socket, to: Socket, reset: () => void): void {
    this.#sources.add(from);
    // One after the other, whatever their delays.
    let last = Promise.resolve();
    let isSlow = false;
    const afterwards = (action: () => void): void => {
      const delay = isSlow ? (this.#slowFrom?.millis ?? 0) : 0;
      const delayed = this.#delayMillis > 0 && this.#isLate() ? this.#delayMillis : 0;
      const due = performance.now() + delayed + delay;
      last = last.then(async () => {
        const rest = due - performance.now();
        if (rest > 0) await sleep(rest, undefined, { ref: false });
        const isLost = this.#mode === 'swallow' || this.#lost.has(from);
        if (!isLost && !to.destroyed) action();
      });
    };
    from.on('data', (data: Buffer) => {
      this.#bytesIn += data.length;
      isSlow ||= this.#slowFrom !== undefined && data.includes(this.#slowFrom.text);
      afterwards(() => this.#passOn(data, to, reset));
    });
    from.on('end', () => {
      afterwards(() => to.end());
    });
    // The handler of `close` deals with the error.
    from.on('error', () => undefined);
    from.once('close', (failed) => {
      this.#sources.delete(from);
      if (failed) afterwards(() => resetSocket(to));
    });
    if (this.#mode === 'pause') from.pause();
  }

  #set(mode: Mode, delayMillis = 0, isLate = always): void {
    this.#mode = mode;
    this.#delayMillis = delayMillis;
    this.#isLate = isLate;
    for (const source of this.#sources) {
      if (mode === 'pause') source.pause();
      else source.resume();
    }
  }

  #passOn(data: Buffer, to: Socket, reset: () => void): void {
    const limit = this.#limit;
    const room = limit ? limit.bytes - this.#bytesOut : Infinity;
    const passed = data.subarray(0, room);
    this.#bytesOut += passed.length;
    to.write(passed);
    if (limit && data.length > room) {
      this.#limit = undefined;
      reset();
      limit.reached();
    }
  }
}
