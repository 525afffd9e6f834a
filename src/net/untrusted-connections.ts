import type { Duplex } from 'node:stream';

import { eventLoop, type Ticks } from '../common/ticks.js';

/** How many requests a tick takes from untrusted connections, before it stops reading them. */
export const REQUESTS_PER_TICK = 100;
/** The most stopped connections that are read again in a tick. */
const MOST_TURNS = 64;
/** How many connections that need no turn any more may be left in a line, besides one for each stopped one. */
const MOST_OUTDATED = 100;
/** How many rejected requests end a connection on which none was ever accepted. */
export const MAX_REJECTIONS = 10;

/** What the event loop reads. A stop takes effect before the next read, and changes no state of the stream. */
type Handle = Record<'readStart' | 'readStop', () => void> | null;

/** Each request asks for it, and a look-up in a WeakMap takes ten times as long. */
const JUDGED = Symbol('judged connection');

/** The socket of a connection, with or without TLS. */
type ConnectionSocket = Duplex & {
  readonly remoteAddress?: string | undefined;
  [JUDGED]?: JudgedConnection;
};

/** A connection, and what its client has shown so far. */
export class JudgedConnection {
  /** Whether its last judged request was accepted. */
  isTrusted = false;
  /** Whether a request was ever accepted. */
  hasBeenTrusted = false;
  /** The rejected requests since the last accepted one. */
  rejections = 0;
  /** Whether a request has arrived on it. */
  isUsed = false;
  readonly #handle: Handle;

  constructor(private readonly socket: ConnectionSocket) {
    this.#handle = (socket as ConnectionSocket & { readonly _handle: Handle })._handle;
  }

  /** Whether it has to end, since none of its requests was ever accepted, and too many were rejected. */
  get isUnwanted(): boolean {
    return !this.hasBeenTrusted && this.rejections >= MAX_REJECTIONS;
  }

  get address(): string {
    return this.socket.remoteAddress ?? '';
  }

  stopReading(): void {
    this.#handle?.readStop();
  }

  /** Unless the stream is paused as well, for a reason of its own. */
  startReading(): void {
    if (!this.socket.isPaused()) this.#handle?.readStart();
  }
}

/**
 * The connections of a port whose clients may be anybody. Rejecting a request costs its client less than the service, and
 * the event loop reads all connections before it does anything else. So a tick takes at most {@link REQUESTS_PER_TICK}
 * requests of these connections. Beyond that none of them is read until its turn comes, in a later tick. Addresses take
 * turns, and so do new connections of an address with its others: a client is not behind all connections of an attacker.
 */
export class UntrustedConnections {
  readonly #read = new Set<JudgedConnection>();
  /** The connections that are not read, in lines. The first line is the next. */
  readonly #lines = new Map<string, Line>();
  /** All of them. A line may also have connections that were trusted or closed meanwhile. */
  readonly #stopped = new Set<JudgedConnection>();
  /** The connection that is not stopped in this tick before it was read. */
  #next: JudgedConnection | undefined;
  #requests = 0;
  #nextTurns = 1;
  #isTickAwaited = false;

  constructor(private readonly ticks: Ticks = eventLoop) {}

  begin(socket: ConnectionSocket): JudgedConnection {
    const connection = new JudgedConnection(socket);
    socket[JUDGED] = connection;
    this.#read.add(connection);
    socket.once('close', () => this.#forget(connection));
    // Node has begun to read by then.
    if (this.#stopped.size > 0) {
      process.nextTick(() => {
        this.#stop(connection);
      });
    }
    return connection;
  }

  of(socket: ConnectionSocket): JudgedConnection {
    return socket[JUDGED] ?? this.begin(socket);
  }

  /** Whether a connection is not read until its turn comes. */
  isStopped(socket: ConnectionSocket): boolean {
    return this.#stopped.has(this.of(socket));
  }

  /** Counts a request that has arrived on a connection. */
  take(connection: JudgedConnection): void {
    if (connection.isTrusted) return;
    connection.isUsed = true;
    this.#requests += 1;
    this.#awaitTick();
    if (this.#requests < REQUESTS_PER_TICK) return;
    for (const one of this.#read) if (one !== connection && one !== this.#next) this.#stop(one);
    // Behind the others, since it has had its turn.
    this.#stop(connection);
    if (this.#next === connection) this.#next = undefined;
  }

  accept(connection: JudgedConnection): void {
    connection.rejections = 0;
    connection.hasBeenTrusted = true;
    if (connection.isTrusted) return;
    connection.isTrusted = true;
    if (this.#stopped.has(connection)) connection.startReading();
    this.#forget(connection);
  }

  reject(connection: JudgedConnection): void {
    connection.rejections += 1;
    if (!connection.isTrusted) return;
    connection.isTrusted = false;
    this.#read.add(connection);
  }

  #stop(connection: JudgedConnection): void {
    // Node may have resumed a connection that was stopped.
    connection.stopReading();
    if (!this.#read.delete(connection)) return;
    this.#stopped.add(connection);
    const { address, isUsed } = connection;
    const name = `${address}${isUsed ? '' : ' new'}`;
    let line = this.#lines.get(name);
    if (!line) {
      line = new Line(!isUsed);
      this.#lines.set(name, line);
    }
    line.add(connection);
    // New ones of an attacker go before those that have closed meanwhile.
    if (line.size > MOST_OUTDATED + 2 * this.#stopped.size) {
      line.keep((one) => this.#stopped.has(one));
    }
    this.#awaitTick();
  }

  #forget(connection: JudgedConnection): void {
    this.#read.delete(connection);
    this.#stopped.delete(connection);
    if (this.#next === connection) this.#next = undefined;
  }

  #awaitTick(): void {
    if (this.#isTickAwaited) return;
    this.#isTickAwaited = true;
    this.ticks.next(() => {
      this.#isTickAwaited = false;
      this.#beginTick();
    });
  }

  /** Reads more connections in the next tick, the more the less has come in this one. Only the first is sure to be read. */
  #beginTick(): void {
    const isBusy = this.#requests >= REQUESTS_PER_TICK;
    this.#nextTurns = isBusy ? 1 : Math.min(2 * this.#nextTurns, MOST_TURNS);
    this.#requests = 0;
    this.#next = undefined;
    for (let turn = 0; turn < this.#nextTurns; turn += 1) {
      const connection = this.#nextStopped();
      if (!connection) break;
      this.#next ??= connection;
      this.#stopped.delete(connection);
      this.#read.add(connection);
      connection.startReading();
    }
    if (this.#next) this.#awaitTick();
  }

  #nextStopped(): JudgedConnection | undefined {
    for (const [name, line] of this.#lines) {
      // The other lines come before its next connection.
      this.#lines.delete(name);
      for (let next = line.take(); next; next = line.take()) {
        if (!this.#stopped.has(next)) continue;
        this.#lines.set(name, line);
        return next;
      }
    }
    return undefined;
  }
}

/** Connections that are not read. Of new ones the last comes first: its client is the likeliest to wait still. */
class Line {
  #added: JudgedConnection[] = [];
  /** The first one is last. */
  #first: JudgedConnection[] = [];

  constructor(private readonly isOfNew: boolean) {}

  get size(): number {
    return this.#added.length + this.#first.length;
  }

  add(connection: JudgedConnection): void {
    this.#added.push(connection);
  }

  /** Drops the others. */
  keep(isKept: (connection: JudgedConnection) => boolean): void {
    this.#added = this.#added.filter(isKept);
    this.#first = this.#first.filter(isKept);
  }

  take(): JudgedConnection | undefined {
    if (this.isOfNew) return this.#added.pop();
    if (this.#first.length === 0) {
      this.#first = this.#added.reverse();
      this.#added = [];
    }
    return this.#first.pop();
  }
}
