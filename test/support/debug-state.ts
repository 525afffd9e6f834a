import type { OutgoingHttpHeaders } from 'node:http';

import type { CalendarUnit } from '../../src/limiter/calendar/calendar.js';
import { send } from './http-client.js';
import { until } from './until.js';

/** How a limit counts that has no windows of a fixed length. */
export interface DebugAlgorithm {
  readonly Algorithm?: 'sliding_window' | 'token_bucket';
  readonly Steps?: number;
  readonly Burst?: number;
  readonly Calendar?: CalendarUnit;
  readonly TimeZone?: string;
}

/** A further limit in the body of `GET /debug/{key}`. */
export interface DebugLimit extends DebugAlgorithm {
  readonly Name: string;
  readonly WindowMillis: number;
  readonly MaxRequestsPerWindow?: number;
  readonly MaxHitsPerWindow?: number;
  readonly Lanes?: readonly string[];
  readonly Per?: 'group';
  readonly NumApprovedThisWindow?: number;
}

/** A held approval in the body of `GET /debug/{key}`. */
export interface DebugHolder {
  readonly Handle: string;
  readonly Holder?: string;
  readonly HeldMillis?: number;
  readonly LapseMillis: number;
  readonly Hits: number;
}

/** A list of the queue in the body of `GET /debug/{key}`. */
export interface DebugQueueList {
  readonly Lane?: string;
  readonly Group?: string;
  readonly NumWaiting: number;
  readonly OldestMillis: number;
  readonly StoppedBy?: string;
  readonly StoppedMillis?: number;
}

/** The body of `GET /debug/{key}`. */
export interface DebugState extends DebugAlgorithm {
  readonly Key: string;
  readonly Found: boolean;
  readonly Config?: {
    readonly WindowMillis: number;
    readonly MaxRequestsPerWindow: number;
    readonly MaxRequestsInQueue: number;
  };
  readonly NumApprovedThisWindow?: number;
  readonly NumDeniedThisWindow?: number;
  readonly NumWaiting?: number;
  readonly NumHeld?: number;
  readonly PausedMillis?: number;
  readonly Limits?: readonly DebugLimit[];
  readonly Queue?: { readonly NumLists: number; readonly Lists: readonly DebugQueueList[] };
  readonly Groups?: readonly {
    readonly Group: string;
    readonly NumApproved: Readonly<Record<string, number>>;
  }[];
  readonly Holders?: readonly DebugHolder[];
}

/** @param headers such as a token's */
export async function debugState(
  url: string,
  key: string,
  headers: OutgoingHttpHeaders = {},
): Promise<DebugState> {
  const answer = await send(url, 'GET', `/debug/${encodeURIComponent(key)}`, headers);
  if (answer.status !== 200) throw new Error(`no state: ${answer.status} ${answer.text}`);
  return answer.json() as DebugState;
}

/** Resolves when exactly `count` requests wait for the key. */
export async function untilWaiting(
  url: string,
  key: string,
  count: number,
  headers: OutgoingHttpHeaders = {},
): Promise<void> {
  await until(async () => (await debugState(url, key, headers)).NumWaiting === count);
}
