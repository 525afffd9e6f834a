import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import { resetSocket } from './reset-socket.js';

type Mode = 'pass' | 'swallow' | 'pause';

const always = (): boolean => true;

/** One direction of all connections of a proxy. Each setting lasts until it is changed. */
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

  /** The number of bytes received so far, whether passed on or not. */
  get bytesIn(): number {
    return this.#bytesIn;
  }

  /** Passes everything on at once, also data that a pause has held back. */
  pass(): void {
    this.#set('pass');
  }

  /**
   * Passes everything on in order, each byte `millis` after it was received.
   * @param isLate called for each piece; if false, the piece is no later than the pieces before it
   */
  delay(millis: number, isLate = always): void {
    this.#set('pass', millis, isLate);
  }

  /** Delays connections that receive `text`, from there on. */
  delayFrom(text: string, millis: number): void {
    this.#slowFrom = { text, millis };
  }

  /**
   * Receives everything and passes on nothing, not even that a side has closed. The connections lose
   * bytes, so cut them before anything passes again.
   */
  swallow(): void {
    this.#set('swallow');
  }

  /** Passes on nothing more of the present connections. Later ones work as usual. */
  lose(): void {
    this.#lost = new Set(this.#sources);
  }

  /** Stops reading, so that bytes stay with their sender until they pass again, and none is lost. */
  pause(): void {
    this.#set('pause');
  }

  /**
   * Passes on `bytes` more bytes. The connection with the next byte is reset, and the byte is lost. So after
   * `toClient.cutAfter(0)` a command runs, and its reply is lost.
   * @returns a promise that resolves when a connection has been reset
   */
  cutAfter(bytes: number): Promise<void> {
    return new Promise((reached) => {
      this.#limit = { bytes: this.#bytesOut + bytes, reached };
    });
  }

  /** Adds a connection. */
  join(from: Socket, to: Socket, reset: () => void): void {
    this.#sources.add(from);
    // Pieces are passed on one after the other, whatever their delays.
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
    const left = limit ? limit.bytes - this.#bytesOut : Infinity;
    const passed = data.subarray(0, left);
    this.#bytesOut += passed.length;
    to.write(passed);
    if (limit && data.length > left) {
      this.#limit = undefined;
      reset();
      limit.reached();
    }
  }
}
