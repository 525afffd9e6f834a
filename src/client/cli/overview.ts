import { setTimeout, clearTimeout } from 'node:timers';

import { SluiceError, SluiceUnavailableError } from '../index.js';
import type { Connection } from './connection.js';
import { shownTime } from './durations.js';
import { CommandLineError } from './errors.js';

/** The most rows that the dashboard's data has. */
const MOST_ROWS = 200;
const TIMEOUT_MILLIS = 5000;

/** What is read of a key of the dashboard's data. */
interface KeyData {
  readonly key: string;
  /** Its own limit comes first. */
  readonly limits: readonly { readonly used: number; readonly maximum: number }[];
  readonly waiting: number;
  /** The one for which it needs a person most comes first. */
  readonly states: readonly string[];
  /** 0 if it is not paused. */
  readonly pausedMillis: number;
  /** If it is denied now. */
  readonly recentDenials?: { readonly perSecond: number };
}

interface OverviewData {
  readonly replicas: readonly unknown[];
  /** Those that need a person most come first. */
  readonly keys: readonly KeyData[];
  readonly isComplete: boolean;
}

/** The states that need a person, by their names in the data. */
const STATES = new Map<string, BusyKey['state']>([
  ['paused', 'paused'],
  ['denied', 'denied'],
  ['queue_full', 'queue full'],
  ['waiting', 'waiting'],
]);

/** A key that may need a person. */
export interface BusyKey {
  readonly key: string;
  /** The first of its states. */
  readonly state: 'paused' | 'denied' | 'queue full' | 'waiting';
  readonly used: number;
  readonly max: number;
  readonly waiting: number;
  readonly deniedPerSecond: number;
  readonly pausedMillis: number;
}

export interface Overview {
  readonly replicas: number;
  /** Whether all keys are known. */
  readonly isComplete: boolean;
  /** Those that need a person most come first. */
  readonly keys: readonly BusyKey[];
}

/**
 * Reads which keys are paused, denied or waited for. Each address is asked until one answers.
 * @param signal ends it
 * @throws SluiceError if Sluice rejects it, SluiceUnavailableError without an answer, CommandLineError for an invalid address
 */
export async function readOverview(
  { urls, token }: Connection,
  signal: AbortSignal,
): Promise<Overview> {
  let failure: unknown;
  for (const url of urls) {
    try {
      return overviewOf(await read(addressOf(url), token, signal));
    } catch (error) {
      if (!(error instanceof SluiceUnavailableError)) throw error;
      failure = error;
    }
  }
  throw failure;
}

function addressOf(url: string): string {
  if (/^https?:/.test(url) && URL.canParse(url)) {
    return `${url.replace(/\/+$/, '')}/ui/data?limit=${MOST_ROWS}`;
  }
  throw new CommandLineError(`url must be an address such as http://localhost:8080, not ${url}`);
}

async function read(
  address: string,
  token: Connection['token'],
  signal: AbortSignal,
): Promise<OverviewData> {
  const headers = token && { Authorization: `Bearer ${token()}` };
  const connection = new AbortController();
  const close = (): void => {
    connection.abort();
  };
  signal.addEventListener('abort', close);
  const timer = setTimeout(close, TIMEOUT_MILLIS);
  try {
    const answer = await fetch(address, { ...(headers && { headers }), signal: connection.signal });
    if (answer.ok) return (await answer.json()) as OverviewData;
    throw errorOf(answer.status);
  } catch (cause) {
    if (cause instanceof SluiceError) throw cause;
    throw new SluiceUnavailableError('Sluice is unreachable', { cause, mayHaveCounted: false });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', close);
  }
}

function errorOf(status: number): SluiceError {
  if (status === 404) {
    const message =
      'no dashboard at this address: DEBUG_ENDPOINTS is false, or it is on the port in ADMIN_PORT';
    return new SluiceError(message, { status });
  }
  if (status < 500) return new SluiceError('the keys may not be read', { status });
  return new SluiceUnavailableError('the keys can not be read', { status, mayHaveCounted: false });
}

function overviewOf({ replicas, keys, isComplete }: OverviewData): Overview {
  return { replicas: replicas.length, isComplete, keys: keys.flatMap(busyKeyOf) };
}

function busyKeyOf({
  key,
  limits,
  waiting,
  pausedMillis,
  recentDenials,
  states,
}: KeyData): BusyKey[] {
  const state = STATES.get(states[0] ?? '');
  if (!state) return [];
  const { used = 0, maximum: max = 0 } = limits[0] ?? {};
  const deniedPerSecond = recentDenials?.perSecond ?? 0;
  return [{ key, state, used, max, waiting, deniedPerSecond, pausedMillis }];
}

/** The state for people, which says how long a pause lasts. */
export function shownState({ state, pausedMillis }: BusyKey): string {
  return state === 'paused' ? `paused ${shownTime(pausedMillis)}` : state;
}
