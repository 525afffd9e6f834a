import type { Http2Session } from 'node:http2';

import type { Clock } from '../common/clock.js';
import { inTicks } from '../common/in-ticks.js';

/** A session that nghttp2 has ended is found after two to three times this long. */
const LOOK_MILLIS = 3000;

/** What was seen of a session. */
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
    session.once('close', () => {
      this.#seen.delete(session);
    });
    if (!this.#cancelTimer) this.#lookLater();
  }

  close(): void {
    this.#cancelTimer?.();
  }

  #lookLater(): void {
    this.#cancelTimer = this.clock.after(LOOK_MILLIS, () => {
      this.#cancelTimer = undefined;
      inTicks(this.#seen, ([session, seen]) => {
        look(session, seen);
      });
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
