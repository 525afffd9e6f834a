import { claimOf } from '../../../src/limiter/request.js';
import type { KeyNames } from '../../../src/redis/shared/key-names.js';
import type {
  Confirmed,
  KeyClaims,
  LeasedPlaces,
} from '../../../src/redis/scripts/several-keys.js';
import type { KnownWindow, SettleReply, Ticket } from '../../../src/redis/scripts/settle-codec.js';
import type { RequestStatus } from '../../../src/limiter/limiter.js';
import type { WaitingStore } from '../../../src/redis/scripts/scripts.js';

/** A settle call that the test answers. */
export interface SettleCall {
  readonly state: string;
  readonly known: KnownWindow;
  readonly askedAbout: readonly Ticket[];
  /** The ids asked about, in the order of the call. */
  readonly ids: readonly string[];
  /**
   * Defaults of a reply: there is room in a second, there are no waiters and approvals, and all places that the caller
   * knows of.
   */
  answer(reply?: Partial<SettleReply>): Promise<void>;
  fail(error?: Error): Promise<void>;
}

/** A renewal of leases that the test answers. */
export interface RenewCall {
  /** The names of the states, the number of places that the caller knows, and the number of the last wake. */
  readonly leased: readonly (readonly [
    state: string,
    places: number,
    wakeNumber: number | undefined,
  ])[];
  /** @param notRenewed the names of the states whose leases are not renewed */
  answer(notRenewed?: readonly string[]): Promise<void>;
  fail(error?: Error): Promise<void>;
}

const NOTHING_NEW: SettleReply = {
  millisToRoom: 1000,
  millisToSettle: undefined,
  wakeNumber: 0,
  waiting: 0,
  places: Infinity,
  limits: '1000:1:5',
  used: 1,
  at: 0,
  unclaimed: 0,
  putBack: [],
  granted: [],
  ended: [],
  holdsLeft: new Map(),
};

/** Resolves when everything that was ready has run. */
export const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export const STORE_IS_AWAY = new Error('the store is down');

/** A store that answers settle calls and renewals when the test says so, and withdrawals at once. */
export class ScriptedStore implements WaitingStore {
  /** All calls in their order. */
  readonly calls: SettleCall[] = [];
  /** All calls in their order. */
  readonly renewals: RenewCall[] = [];
  /** The ids of each withdrawal of a key, in their order. */
  readonly withdrawn: (readonly string[])[] = [];
  /** The ids of each confirmation of a key, in their order. */
  readonly confirmed: (readonly string[])[] = [];
  /** The number of the last wake, as replies have it. */
  wakeNumber = 0;
  /** Redis's time. */
  now = (): number => 0;

  settle(names: KeyNames, known: KnownWindow, askedAbout: readonly Ticket[]): Promise<SettleReply> {
    return new Promise((resolve, reject) => {
      this.calls.push({
        state: names.state,
        known,
        askedAbout,
        ids: askedAbout.map(claimIn),
        answer: (reply = {}) => {
          resolve({ ...NOTHING_NEW, wakeNumber: this.wakeNumber, at: this.now(), ...reply });
          return quiet();
        },
        fail: (error = STORE_IS_AWAY) => {
          reject(error);
          return quiet();
        },
      });
    });
  }

  renew<Leased extends LeasedPlaces>(leased: readonly Leased[]): Promise<Leased[]> {
    return new Promise((resolve, reject) => {
      this.renewals.push({
        leased: leased.map((each) => [each.names.state, each.places, each.wakeNumber] as const),
        answer: (notRenewed = []) => {
          resolve(leased.filter(({ names }) => notRenewed.includes(names.state)));
          return quiet();
        },
        fail: (error = STORE_IS_AWAY) => {
          reject(error);
          return quiet();
        },
      });
    });
  }

  withdraw(withdrawals: readonly KeyClaims[]): Promise<number[]> {
    for (const { claims } of withdrawals) this.withdrawn.push([...claims]);
    return Promise.resolve(withdrawals.map(({ claims }) => claims.length));
  }

  /** Each approval may be told. */
  confirm(granted: readonly KeyClaims[]): Promise<Confirmed[]> {
    for (const { claims } of granted) this.confirmed.push([...claims]);
    return Promise.resolve(
      granted.map(({ claims }) => ({ mayBeTold: claims.map(() => true), quotaOf: undefined })),
    );
  }

  /** Each request is the head of the queue. */
  statuses(_names: KeyNames, requestIds: readonly string[]): Promise<RequestStatus[]> {
    const head: RequestStatus = { status: 'waiting', position: 1, waitMillis: 1000 };
    return Promise.resolve(requestIds.map(() => head));
  }

  get last(): SettleCall {
    return this.calls.at(-1)!;
  }

  get lastRenewal(): RenewCall {
    return this.renewals.at(-1)!;
  }
}

/** What the caller calls a waiter that it asks about. */
export function claimIn({ waiter: { request } }: Ticket): string {
  return claimOf(request.requestId, request.owner) ?? request.requestId;
}
