import type { Logger } from 'pino';
import { z } from 'zod';

import { parsedMessage } from '../../common/schemas.js';
import { claimHere, endedHere, type EndedWait } from '../scripts/requests-codec.js';
import type { Connections } from '../connections/connections.js';

/** The message of `publish_wake` in `lua/lib/instance.lua`. */
const wakeSchema = z
  .object({
    /** When the waiters were approved, by Redis's clock. */
    at: z.number(),
    /** One more than the number of the key's last wake. */
    number: z.number(),
    /** Until there may be room again. 0: there is room now, and more waiters can be approved at once. */
    millisToRoom: z.number(),
    /** How many wait, on all replicas. */
    waiting: z.number(),
    /** The limits in force, as Redis writes them. */
    limits: z.string(),
    /** What counts of the limits: `UsedOfLimits`. */
    approved: z.union([z.number(), z.string()]),
    /** What counts of the limits of the groups in which waiters were approved: `UsedOfGroups`. */
    groups: z.record(z.string(), z.string()).optional(),
    /** The claims of the waiters just approved. */
    granted: z.array(z.string()),
    /** The claims of checks whose waits have ended otherwise, with the reason. */
    ended: z.array(z.string()).optional(),
  })
  .transform(({ approved: used, ended = [], ...wake }) => ({ ...wake, used, ended }));

/** The message of a window leader that resigns. */
const leaderResignedSchema = z.object({ leaderResigned: z.literal(true) });

/** The message of `recovery.begin_after_loss` in `lua/lib/recovery.lua`. */
const memoryLostSchema = z.object({ memoryLost: z.literal(true) });

const messageSchema = z.union([wakeSchema, leaderResignedSchema, memoryLostSchema]);

/** The waiters on this replica that were approved, those whose waits have ended otherwise, and the state of the queue. */
export interface Wake extends Omit<z.infer<typeof wakeSchema>, 'ended'> {
  readonly ended: readonly EndedWait[];
}

export interface WakeListener {
  /** Messages before this may be lost. Later ones arrive. */
  onSubscribed(): void;
  onWake(wake: Wake): void;
  onLeaderResigned(): void;
  /** Redis has lost the key, and with it the queue. */
  onMemoryLost(): void;
}

/** Receives and sends messages. */
export type WakeMessages = Pick<Connections, 'subscriber' | 'publish'>;

/**
 * The pub/sub channels of the keys for which this replica has waiters. Messages are hints: `onSubscribed` and the
 * timers of the listeners compensate for lost ones.
 */
export class WakeChannel {
  readonly #listeners = new Map<string, WakeListener>();

  constructor(
    private readonly connections: WakeMessages,
    private readonly replicaId: string,
    private readonly logger: Logger,
  ) {
    connections.subscriber.listen({
      onMessage: (channel, text) => this.#receive(channel, text),
      onSubscribed: (channel) => {
        this.#listeners.get(channel)?.onSubscribed();
      },
    });
  }

  listen(channel: string, listener: WakeListener): void {
    this.#listeners.set(channel, listener);
    this.connections.subscriber.subscribe(channel);
  }

  /** Does nothing if another listener has taken the channel meanwhile. */
  unlisten(channel: string, listener: WakeListener): void {
    if (this.#listeners.get(channel) !== listener) return;
    this.#listeners.delete(channel);
    this.connections.subscriber.unsubscribe(channel);
  }

  /** Tells the other replicas that the key has no window leader any more. */
  async announceResignation(channel: string): Promise<void> {
    try {
      await this.connections.publish(channel, JSON.stringify({ leaderResigned: true }));
    } catch (error) {
      this.logger.debug({ err: error, channel }, 'resignation not announced');
    }
  }

  #receive(channel: string, text: string): void {
    const listener = this.#listeners.get(channel);
    if (!listener) return;
    const message = parsedMessage(messageSchema, text);
    if (!message) {
      this.logger.warn({ channel }, 'unknown message on a wake channel ignored');
    } else if ('leaderResigned' in message) {
      listener.onLeaderResigned();
    } else if ('memoryLost' in message) {
      listener.onMemoryLost();
    } else {
      const { replicaId } = this;
      const granted = message.granted.flatMap((claim) => claimHere(claim, replicaId) ?? []);
      listener.onWake({ ...message, granted, ended: endedHere(message.ended, replicaId) });
    }
  }
}
