import type { Clock } from '../../common/clock.js';

/** The mode of a replica's side of a key's queue. */
export type QueueMode =
  /** Nobody here has a ticket yet, so there is nothing to listen for. */
  | 'asking'
  /** Subscribed to the key's wakes; a timer is armed for the window's end and for the lease. */
  | 'listening'
  /** A settle call is needed, and waits for its turn. */
  | 'inLine'
  /** A settle call is under way. */
  | 'settling'
  /** A settle call is under way, and another has to follow at once. */
  | 'resettling'
  /** No place remains. The queue is not used again. */
  | 'over';

export type QueueEvent =
  /** A check was sent, and its waiter has a place here. */
  | 'asked'
  /** A check was answered with a ticket. */
  | 'ticketed'
  /** A settle call is needed: because of a timer, a subscription, or a doubted place. */
  | 'due'
  /** The turn of the settle call has come. */
  | 'begun'
  /** The settle call succeeded. */
  | 'answered'
  /** The settle call failed. */
  | 'failed'
  /** The last request was approved, withdrawn, or decided without a wait. */
  | 'emptied';

/**
 * The mode after each event. Events that lead to the same mode do nothing. Events that are not listed can't happen.
 *
 *     asking ──ticketed──▶ listening ◀──answered── settling
 *                              │                    ▲ │ │
 *                             due             begun │ │ │ due
 *                              ▼                    │ │ ▼
 *                            inLine ────────────────┘ │ resettling
 *                              ▲                      │     │
 *                              └───────failed─────────┘     │
 *                              └──────answered, failed──────┘
 *
 *     each of them ──emptied──▶ over
 */
export const TRANSITIONS: Readonly<
  Record<QueueMode, Readonly<Partial<Record<QueueEvent, QueueMode>>>>
> = {
  asking: {
    asked: 'asking',
    ticketed: 'listening',
    // Without a ticket there is no place in Redis to ask about.
    due: 'asking',
    emptied: 'over',
  },
  listening: {
    asked: 'listening',
    ticketed: 'listening',
    due: 'inLine',
    emptied: 'over',
  },
  inLine: {
    asked: 'inLine',
    ticketed: 'inLine',
    due: 'inLine',
    begun: 'settling',
    emptied: 'over',
  },
  settling: {
    asked: 'settling',
    ticketed: 'settling',
    due: 'resettling',
    answered: 'listening',
    failed: 'inLine',
    emptied: 'over',
  },
  resettling: {
    asked: 'resettling',
    ticketed: 'resettling',
    due: 'resettling',
    answered: 'inLine',
    failed: 'inLine',
    emptied: 'over',
  },
  over: {
    // A call or a message was under way when the queue became empty.
    due: 'over',
    answered: 'over',
    failed: 'over',
  },
};

/** @throws Error for an event that can't happen in this mode */
export function nextMode(mode: QueueMode, event: QueueEvent): QueueMode {
  const next = TRANSITIONS[mode][event];
  if (next === undefined) throw new Error(`a queue that is ${mode} can't be ${event}`);
  return next;
}

/** Timers that are due within this time of each other count as the same. */
const SAME_TIME_MILLIS = 1;

/** The one timer of a queue's mode. When it is armed again, the earlier time no longer counts. */
export class ModeTimer {
  #armed: { readonly dueAt: number; readonly cancelTimer: () => void } | undefined;

  constructor(private readonly clock: Clock) {}

  /** @param dueAt by the clock; a time in the past is due at once */
  arm(dueAt: number, onDue: () => void): void {
    if (this.#armed && Math.abs(this.#armed.dueAt - dueAt) < SAME_TIME_MILLIS) return;
    this.cancel();
    const cancelTimer = this.clock.after(dueAt - this.clock.now(), () => {
      this.#armed = undefined;
      onDue();
    });
    this.#armed = { dueAt, cancelTimer };
  }

  cancel(): void {
    this.#armed?.cancelTimer();
    this.#armed = undefined;
  }
}
