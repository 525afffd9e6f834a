import type { Clock } from '../../common/clock.js';
import type { ThereWhileWaiting } from '../scripts/several-keys.js';
import type { KeyNames } from '../shared/key-names.js';
import type { Lease } from './lease.js';
import type { LeasedQueue } from './lease-renewals.js';
import type { Places } from './places.js';

/** What the renewals of a lease look for, alternately. */
const LOOK_FOR_NEXT = { queue: 'waiting', waiting: 'queue' } as const;

export interface QueueLeaseParts {
  readonly names: KeyNames;
  readonly places: Places;
  readonly lease: Lease;
  readonly clock: Clock;
  /** The number of the last wake that this replica knows of; undefined if it knows none. */
  readonly wakeNumber: () => number | undefined;
  /** Whether no settle call is under way or due: that would renew the lease. */
  readonly isListening: () => boolean;
  /** A settle has to follow. */
  readonly onDue: () => void;
}

/** The lease of a replica's places in the queue of one key, as it is renewed with others. */
export class QueueLease implements LeasedQueue {
  #lookFor: ThereWhileWaiting = 'queue';

  constructor(private readonly parts: QueueLeaseParts) {}

  get names(): KeyNames {
    return this.parts.names;
  }

  /** How many have a ticket. */
  get places(): number {
    return this.parts.places.ticketed;
  }

  get keepsAny(): boolean {
    return this.parts.places.keepsAny;
  }

  get wakeNumber(): number | undefined {
    return this.parts.wakeNumber();
  }

  get renewalDueAt(): number {
    return this.parts.isListening() ? this.parts.lease.renewalDueAt : Infinity;
  }

  get lookFor(): ThereWhileWaiting {
    return this.#lookFor;
  }

  leaseRenewed(sentAt: number): void {
    this.#lookFor = LOOK_FOR_NEXT[this.#lookFor];
    if (this.parts.lease.renewed(sentAt, this.parts.clock.now())) this.parts.onDue();
  }

  leaseDoubted(): void {
    this.parts.onDue();
  }
}
