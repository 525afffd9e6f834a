import { Waiter } from '../../../src/limiter/waiter.js';
import { Confirmations } from '../../../src/redis/waiting/confirmations.js';
import { LocalQueue } from '../../../src/redis/waiting/local-queue.js';
import { method } from './method-fault.js';
import type { PlantedFault } from './planted-fault.js';
import type { Aim } from './schedule.js';

const KEPT: Aim = { fates: ['named', 'kept', 'leave'] };
const KEPT_IN_TIME: Aim = { ...KEPT, shape: { isPrompt: true } };

/** Changes how long a replica keeps a place when its check is over. */
function keptFor(millis: (keepMillis: number) => number): () => () => void {
  return () =>
    method(Waiter, 'keep', (keep) => {
      return function (this: Waiter, place, clock, onKeptLongEnough) {
        const other = {
          now: () => clock.now(),
          after: (keepMillis: number, callback: () => void) =>
            clock.after(millis(keepMillis), callback),
        };
        return keep.call(this, place, other, onKeptLongEnough);
      };
    });
}

/** Faults of places that outlive their connections, by the invariant that they break. */
export const KEPT_PLACE_FAULTS: Readonly<Record<string, readonly PlantedFault[]>> = {
  'a place stays without its connection for as long as it is kept': [
    {
      name: 'a kept place ends with its connection',
      aim: KEPT,
      plant: keptFor(() => 0),
    },
    {
      name: 'a kept place ends with its replica',
      aim: KEPT,
      lua: 'queue/replicas.renewed_until',
      body: 'return call.now_ms + call.lease',
    },
    {
      name: 'a replica that stops gives kept places up',
      firstSeed: 87,
      aim: { fates: ['named', 'kept', 'stop'] },
      plant: () => method(LocalQueue, 'handOver', () => () => undefined),
    },
    {
      name: 'a kept place outlives its time',
      aim: KEPT_IN_TIME,
      plant: keptFor((keepMillis) => 10 * keepMillis),
    },
    {
      name: 'the kept place of a replica that is gone outlives its time',
      aim: KEPT,
      lua: 'queue/replicas.renewed_until',
      body: 'return original(replica, call) + replica.keep',
    },
  ],
  'a place has one owner, and its approval is for that one': [
    {
      name: 'a check whose place was taken over gets the approval that is kept for the caller',
      firstSeed: 225,
      aim: KEPT,
      lua: 'confirm.confirm_one',
      body: 'return original(keys, state, call, record, record and record.owner)',
    },
    {
      name: 'a check whose place was taken over gives the place back',
      aim: KEPT,
      lua: 'withdraw.ids_of_claims',
      body: `local ids = {}
    for i, claim in ipairs(claims) do
      ids[i] = key_claims.parse(call, claim)
    end
    return ids, ids, named_requests.find_all(keys, ids)`,
    },
    {
      name: 'a place that is taken over is kept for as long as before',
      aim: KEPT,
      lua: 'queue/queue.take_over',
      body: `check.keep = record.keep
    original(keys, state, call, record, check)`,
    },
  ],
  'an approval is kept for the caller of a kept place until it is claimed, once, or lapses': [
    {
      name: 'a caller is told of an approval before Redis has confirmed it',
      firstSeed: 15,
      aim: KEPT,
      plant: () =>
        method(Confirmations, 'add', () => ({ onAnswer }) => {
          onAnswer(true, 0, undefined);
        }),
    },
    {
      name: 'the confirmation of an approval that has lapsed is taken',
      firstSeed: 69,
      aim: { fates: ['named', 'kept', 'freeze'] },
      lua: 'confirm.confirm_one',
      body: `return record and original(keys, state, call, record, owner) or CLAIMED`,
    },
    {
      name: 'an approval counts again when it is claimed',
      aim: KEPT,
      lua: 'lib/unclaimed-approvals.claim',
      body: `original(keys, state, call, record, owner)
    key_limits.take(keys, state, call, 'again', record.hits, false)`,
    },
    {
      name: 'an approval that nobody claims does not lapse',
      aim: KEPT,
      lua: 'queue/heads.terms_of',
      body: `local terms = original(entry)
    return { request_id = terms.request_id, hits = terms.hits, hold = entry.keep and 1000 * entry.keep or terms.hold }`,
    },
    {
      name: 'an approval that has lapsed can be claimed later',
      firstSeed: 19,
      aim: KEPT,
      lua: 'lib/unclaimed-approvals.end_lapsed',
      body: '',
    },
  ],
};
