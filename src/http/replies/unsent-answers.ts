import type { Socket } from 'node:net';

import type { Response } from 'express';

const MIB = 1024 * 1024;

/** The most bytes of answers that a process keeps until clients read them: for a connection, and for a port. */
export const UNSENT_BYTES = { connection: 4 * MIB, port: 64 * MIB } as const;

/** A client that has read nothing for this many sweeps is too slow. The first one may come right after the answer. */
const SWEEPS = 4;

/**
 * Bounds the answers of a port that are not sent, since their clients do not read. Every path counts the bytes that it
 * gives to a connection which has not sent its earlier answers, and those of answers that are not small.
 */
export class UnsentAnswers {
  #bytes = 0;
  /** The bytes by connection. The first connection has sent nothing for the longest time. */
  readonly #of = new Map<Socket, number>();
  /** The connections whose end is awaited. */
  readonly #awaited = new WeakSet<Socket>();
  /** What a connection had sent at a sweep, and at how many sweeps since. */
  readonly #standstills = new WeakMap<Socket, { sent: string; sweeps: number }>();
  #onDropped: (reason: 'unread_answers' | 'slow_reader') => void = () => undefined;

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Drops each of `connections` whose client reads nothing for `stallMillis`, or a third longer.
   * @returns a function that stops it
   */
  watch(
    connections: ReadonlySet<Socket>,
    stallMillis: number,
    onDropped: (reason: 'unread_answers' | 'slow_reader') => void,
  ): () => void {
    this.#onDropped = onDropped;
    const timer = setInterval(
      () => {
        for (const socket of connections) this.#look(socket);
      },
      stallMillis / (SWEEPS - 1),
    ).unref();
    return () => clearInterval(timer);
  }

  /** Counts bytes of an answer until `sent`. Drops connections if these are too many. */
  add(socket: Socket, bytes: number): void {
    if (socket.destroyed) return;
    if (!this.#awaited.has(socket)) {
      this.#awaited.add(socket);
      socket.once('close', () => this.#forget(socket));
    }
    const ofConnection = (this.#of.get(socket) ?? 0) + bytes;
    this.#of.set(socket, ofConnection);
    this.#bytes += bytes;
    if (ofConnection > UNSENT_BYTES.connection) this.#drop(socket, 'unread_answers');
    while (this.#bytes > UNSENT_BYTES.port) {
      const [first] = this.#of.keys();
      if (!first) return;
      this.#drop(first, 'unread_answers');
    }
  }

  sent(socket: Socket, bytes: number): void {
    const before = this.#of.get(socket);
    if (before === undefined) return;
    this.#bytes -= bytes;
    // The next one is the last that has sent something.
    this.#of.delete(socket);
    if (before > bytes) this.#of.set(socket, before - bytes);
  }

  /** Counts an answer that has been given to Node in full, until it is sent. */
  addWhole(response: Response, bytes: number): void {
    response.locals.unsentBytes = bytes;
    this.add(response.req.socket, bytes);
    response.once('finish', this.#onFinish);
  }

  /** One function for all answers. */
  readonly #onFinish = ((unsent) =>
    function (this: Response): void {
      unsent.sent(this.req.socket, this.locals.unsentBytes ?? 0);
    })(this);

  #look(socket: Socket): void {
    if (socket.writableLength === 0) {
      this.#standstills.delete(socket);
      return;
    }
    const sent = `${socket.bytesWritten} ${socket.writableLength}`;
    const before = this.#standstills.get(socket);
    if (before?.sent !== sent) {
      this.#standstills.set(socket, { sent, sweeps: 1 });
      return;
    }
    before.sweeps += 1;
    if (before.sweeps === SWEEPS) this.#drop(socket, 'slow_reader');
  }

  #drop(socket: Socket, reason: 'unread_answers' | 'slow_reader'): void {
    this.#forget(socket);
    socket.destroy();
    this.#onDropped(reason);
  }

  #forget(socket: Socket): void {
    this.#bytes -= this.#of.get(socket) ?? 0;
    this.#of.delete(socket);
  }
}

/** The unsent answers of the port that gives this one. */
export function unsentOf(response: Response): UnsentAnswers {
  return response.app.locals.unsent as UnsentAnswers;
}
