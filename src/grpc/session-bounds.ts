import type { Http2Session } from 'node:http2';

import type { Clock } from '../common/clock.js';
import { RecentValues } from '../common/collections.js';
import { inTicks } from '../common/ticks.js';

/** Of the resets of one address: more than a gateway sends at once when all of its calls time out. */
const OF_ADDRESS = { burst: 5000, perMilli: 0.5 };
/** As nghttp2 has them, which ends a connection beyond them: `nghttp2_option_set_stream_reset_rate_limit`. */
const OF_CONNECTION = { burst: 1000, perMilli: 0.033 };
/** The resets of a connection that are let pass while its address is beyond its bound. */
const LET_PASS = 10;
/** How long an address that was beyond its bound gets a new connection only now and then. */
const SUSPECT_MILLIS = 10_000;
const ADMITTED_EVERY_MILLIS = 250;
/** The most addresses that are remembered, in each of two generations. */
const KEPT_ADDRESSES = 10_000;

/** What is left of a rate. */
class Allowance {
  #left: number;

  constructor(
    private readonly rate: Readonly<typeof OF_ADDRESS>,
    private at: number,
  ) {
    this.#left = rate.burst;
  }

  /** @returns false if nothing is left */
  take(now: number): boolean {
    this.#left = Math.min(this.rate.burst, this.#left + (now - this.at) * this.rate.perMilli);
    this.at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}

interface Address {
  readonly allowance: Allowance;
  suspectUntil: number;
  admitsAt: number;
}

/** A connection and its resets. */
export interface CountedConnection {
  readonly address: string;
  readonly allowance: Allowance;
  resets: number;
}

/**
 * Bounds streams that clients open and reset before they are answered (CVE-2023-44487): these cost a client nothing. A
 * bound for each connection alone would be evaded by the next connection, so that there is one for each address.
 */
export class ResetBounds {
  readonly #addresses = new RecentValues<Address>(KEPT_ADDRESSES);

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  admits(address: string): boolean {
    const known = this.#addresses.get(address);
    const now = this.clock.now();
    if (!known || now >= known.suspectUntil) return true;
    if (now < known.admitsAt) return false;
    known.admitsAt = now + ADMITTED_EVERY_MILLIS;
    return true;
  }

  connection(address: string): CountedConnection {
    return { address, allowance: new Allowance(OF_CONNECTION, this.clock.now()), resets: 0 };
  }

  /** Counts a reset. @returns false if the connection has to end */
  allows(connection: CountedConnection): boolean {
    const now = this.clock.now();
    connection.resets += 1;
    const known = this.#addresses.get(connection.address) ?? {
      allowance: new Allowance(OF_ADDRESS, now),
      suspectUntil: now,
      admitsAt: now,
    };
    this.#addresses.set(connection.address, known);
    const isWithin = known.allowance.take(now);
    if (!isWithin) known.suspectUntil = now + SUSPECT_MILLIS;
    return connection.allowance.take(now) && (isWithin || connection.resets <= LET_PASS);
  }
}

/** A session that nghttp2 has ended is found after two to three times this long. */
const LOOK_MILLIS = 3000;

interface Seen {
  /** The bytes that had been read at the last look. */
  read: number;
  /** The bytes that had been read when a ping was last answered. */
  readAlive: number;
}

/**
 * Destroys sessions that nghttp2 has ended with a GOAWAY, since their clients have broken the protocol. Node reports
 * none of these, and no longer reads their connections: they would stay open until the keepalive finds them, after 50 s.
 *
 * Such a session is known by a ping that it does not write. So is one whose client does not read, and has left the
 * answers of all its streams in the buffers of the system. A session gets the ping only if something was read, and nothing
 * more came since the last look.
 */
export class EndedSessions {
  readonly #seen = new Map<Http2Session, Seen>();
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly clock: Clock) {}

  add(session: Http2Session): void {
    this.#seen.set(session, { read: 0, readAlive: -1 });
    session.once('close', () => this.#seen.delete(session));
    if (!this.#cancelTimer) this.#lookLater();
  }

  close(): void {
    this.#cancelTimer?.();
  }

  #lookLater(): void {
    this.#cancelTimer = this.clock.after(LOOK_MILLIS, () => {
      this.#cancelTimer = undefined;
      inTicks(this.#seen, ([session, seen]) => look(session, seen));
      if (this.#seen.size > 0) this.#lookLater();
    });
  }
}

function look(session: Http2Session, seen: Seen): void {
  if (session.destroyed) return;
  const { socket } = session;
  const { bytesRead, bytesWritten } = socket;
  if (bytesRead !== seen.read) {
    seen.read = bytesRead;
    return;
  }
  if (bytesRead === seen.readAlive) return;
  const isSent = session.ping((error) => {
    if (!error && !session.destroyed) seen.readAlive = socket.bytesRead;
  });
  if (!isSent) return;
  setImmediate(() => {
    if (!session.destroyed && socket.bytesWritten === bytesWritten) session.destroy();
  });
}
