import { AnswerPart, parsed } from '../calls/answer-part.js';
import { within } from '../calls/pending-request.js';
import { SluiceError, SluiceUnavailableError } from '../index.js';
import type { Connection } from './connection.js';
import { shownTime } from './durations.js';
import { CommandLineError } from './errors.js';

/** The most rows that the dashboard's data has. */
const MOST_ROWS = 200;
const TIMEOUT_MILLIS = 5000;

/** The states that need a person, by their names in the data. */
const STATES = new Map<string, BusyKey['state']>([
  ['paused', 'paused'],
  ['denied', 'denied'],
  ['queue_full', 'queue full'],
  ['waiting', 'waiting'],
]);

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
): Promise<AnswerPart> {
  const headers = token && { Authorization: `Bearer ${token()}` };
  const ask = async (connection: AbortSignal): Promise<AnswerPart> => {
    const answer = await fetch(address, { ...(headers && { headers }), signal: connection });
    if (!answer.ok) throw errorOf(answer.status);
    return new AnswerPart(parsed(await answer.text()), answer.status);
  };
  try {
    return await within(TIMEOUT_MILLIS, ask, signal);
  } catch (cause) {
    if (cause instanceof SluiceError) throw cause;
    throw new SluiceUnavailableError('Sluice is unreachable', { cause, mayHaveCounted: false });
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

function overviewOf(data: AnswerPart): Overview {
  return {
    replicas: data.field('replicas').list.length,
    isComplete: data.field('isComplete').flag,
    keys: data.field('keys').list.flatMap(busyKeyOf),
  };
}

/** @returns nothing if nobody has to look at the key */
function busyKeyOf(row: AnswerPart): BusyKey[] {
  // The one for which it needs a person most comes first.
  const [first] = row.field('states').list;
  const state = STATES.get(first?.text ?? '');
  if (!state) return [];
  // Its own limit comes first.
  const [own] = row.field('limits').list;
  const denials = row.field('recentDenials');
  return [
    {
      key: row.field('key').text,
      state,
      used: own?.field('used').number ?? 0,
      max: own?.field('maximum').number ?? 0,
      waiting: row.field('waiting').number,
      deniedPerSecond: denials.isMissing ? 0 : denials.field('perSecond').number,
      pausedMillis: row.field('pausedMillis').number,
    },
  ];
}

export function shownState({ state, pausedMillis }: BusyKey): string {
  return state === 'paused' ? `paused ${shownTime(pausedMillis)}` : state;
}
