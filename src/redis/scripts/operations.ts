import { BOUNDS } from '../../limiter/bounds.js';
import { UnavailableError } from '../../limiter/errors.js';
import type {
  Answer,
  Asked,
  OperationName,
  RejectedReport,
  Remaining,
} from '../../limiter/limiter.js';
import { MOST_LISTS_SHOWN } from '../../limiter/queue-order.js';
import type { KeyNames } from '../shared/key-names.js';
import { decodeExamined, decodePeek, keysToExamine } from './looks-codec.js';
import { encodeGroup, sayList, sayRequest } from './requests-codec.js';
import type { CallerSettings } from './shared-arguments.js';

/** What `lua/amend.lua` replies, unless it is the time until the hold lapses. */
export const AMEND_REPLY = {
  ofWindow: -1,
  notFound: -2,
  holdTooLong: -3,
  /** Less the most hits that the approval may get. */
  tooManyHits: -4,
} as const;

/** What `lua/pause.lua` replies if the key has no room for the group. */
const PAUSE_KEY_FULL = -1;

/** What `lua/remaining.lua` replies. A key without further limits names none. */
type ReportSaid = Remaining | (Partial<RejectedReport> & Pick<RejectedReport, 'rejected'>);

export function decodeReported(reply: unknown): Remaining | RejectedReport {
  const said = JSON.parse(reply as string) as ReportSaid;
  const isUnknown = 'rejected' in said && said.rejected === 'limit';
  return { ...(isUnknown && { further: [] }), ...said } as Remaining | RejectedReport;
}

/** The operations that are one call of a script about one key. */
export type ScriptedOperation = Exclude<
  OperationName,
  'giveBack' | 'statusOf' | 'inspect' | 'holdings' | 'endHold'
>;

/** What an operation is asked, beside the key. */
export type AskedOfKey<Name extends OperationName> = Omit<Asked<Name>, 'key'>;

/** How an operation is a call of a script. */
export interface Row<Name extends OperationName> {
  readonly script: 'release' | 'amend' | 'pause' | 'remaining' | 'refund' | 'peek' | 'examine';
  /** Whether a call that may have run may be sent again. Default: true. */
  readonly isRepeatable?: boolean;
  /** The KEYS of a script that needs nothing of the caller. Undefined: all, with the shared arguments. */
  readonly keys?: (names: KeyNames) => string[];
  /** The arguments that are the script's own. */
  readonly encode: (
    asked: AskedOfKey<Name>,
    names: KeyNames,
    settings: Pick<CallerSettings, 'limitsOf' | 'maxHoldsPerKey' | 'maxGroupsPerKey'>,
  ) => readonly (string | number)[];
  readonly decode: (reply: unknown, names: KeyNames, asked: AskedOfKey<Name>) => Answer<Name>;
}

export const ROWS: { readonly [Name in ScriptedOperation]: Row<Name> } = {
  release: {
    script: 'release',
    // Again, it would not find the released approval.
    isRepeatable: false,
    encode: ({ requestId, isUnused = false }) => [requestId, isUnused ? 1 : 0],
    decode: (reply) => reply !== 0,
  },

  amend: {
    script: 'amend',
    encode: ({ requestId, hits, holdMillis, maxHits, maxHoldMillis }) => [
      requestId,
      hits ?? '',
      holdMillis ?? '',
      maxHits ?? '',
      maxHoldMillis ?? BOUNDS.holdMillis.max,
    ],
    decode: (reply) => {
      const number = Number(reply);
      if (number <= AMEND_REPLY.tooManyHits) {
        return { rejected: 'hits', maxHits: AMEND_REPLY.tooManyHits - number };
      }
      if (number === AMEND_REPLY.holdTooLong) return { rejected: 'hold' };
      if (number === AMEND_REPLY.notFound) return undefined;
      return number === AMEND_REPLY.ofWindow ? {} : { holdMillis: number };
    },
  },

  pause: {
    script: 'pause',
    encode: ({ millis, canShorten = true, group }, _names, { maxGroupsPerKey }) => [
      millis,
      canShorten ? 1 : 0,
      encodeGroup(group),
      maxGroupsPerKey,
    ],
    decode: (reply) => {
      if (reply === PAUSE_KEY_FULL) throw new UnavailableError('key_full');
      return Number(reply);
    },
  },

  reportRemaining: {
    script: 'remaining',
    encode: ({ limit = '', remaining, resetMillis = '', group }, _names, { maxGroupsPerKey }) => [
      limit,
      remaining,
      resetMillis,
      encodeGroup(group),
      maxGroupsPerKey,
    ],
    decode: decodeReported,
  },

  refund: {
    script: 'refund',
    // Again, it would refund more.
    isRepeatable: false,
    encode: ({ hits, list }) => [JSON.stringify({ hits, list: list && sayList(list) })],
    decode: Number,
  },

  peek: {
    script: 'peek',
    encode: (request, { key }, { limitsOf, maxHoldsPerKey: maxHolds, maxGroupsPerKey }) => {
      const maxGroups = request.list?.kind === 'group' ? maxGroupsPerKey : undefined;
      const { ceilings } = limitsOf(key);
      return [JSON.stringify(sayRequest(request, { ceilings, maxHolds, maxGroups }))];
    },
    decode: (reply, _names, { list }) => decodePeek(reply, list),
  },

  examine: {
    script: 'examine',
    keys: keysToExamine,
    encode: ({ mostQueued }) => [mostQueued, MOST_LISTS_SHOWN],
    decode: decodeExamined,
  },
};
