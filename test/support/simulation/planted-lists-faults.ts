import { LocalQueue } from '../../../src/redis/waiting/local-queue.js';
import { Places } from '../../../src/redis/waiting/places.js';
import { method } from './method-fault.js';
import type { PlantedFault } from './planted-fault.js';
import type { Aim } from './schedule.js';

/** A limit of one lane, which is full for longer than the others. */
const SHARE = {
  name: 'a',
  windowMillis: 1000,
  maximum: 1,
  counts: 'hits',
  keepsReleased: false,
  lanes: ['a'],
} as const;
const LISTS_SHARED: Aim = { fates: ['lists'], shape: { maxRequests: 3, further: [SHARE] } };
const LISTS: Aim = { fates: ['lists'] };
const LISTS_LOST: Aim = { fates: ['lists', 'tear queue', 'lose memory'] };
const LISTS_LEFT: Aim = { fates: ['lists', 'leave'] };

/** While others wait on, a wake does not reach the waiters of lanes with a head start. */
function loseWakesOfUrgent(): () => void {
  let isLost = false;
  const undo = [
    method(LocalQueue, 'onWake', (onWake) => {
      return function (this: LocalQueue, wake) {
        isLost = wake.waiting > 0;
        onWake.call(this, wake);
        isLost = false;
      };
    }),
    method(Places, 'get', (get) => {
      return function (this: Places, claim) {
        const place = get.call(this, claim);
        const list = place?.waiter.list;
        const isUrgent = list?.kind === 'lane' && list.headStartMillis > 0;
        return isLost && isUrgent ? undefined : place;
      };
    }),
  ];
  return () => {
    for (const each of undo) each();
  };
}

/** Faults of lanes and groups, by the invariant that they break. */
export const LISTS_FAULTS: Readonly<Record<string, readonly PlantedFault[]>> = {
  'a lane has its turn by its head start': [
    {
      name: 'waiters who are served are those of the lane that began to wait first',
      aim: LISTS,
      lua: 'queue/turn-walk.is_before',
      body: 'return one.rank < other.rank or (one.rank == other.rank and one.ticket < other.ticket)',
    },
    {
      name: 'a head start does not count when a waiter joins',
      aim: LISTS,
      lua: 'queue/lists.key_of_lane',
      body: 'return tonumber((entries.split(entry)))',
    },
    {
      name: 'a newcomer passes the lanes that would be next',
      firstSeed: 78,
      aim: LISTS,
      lua: 'queue/heads.is_before_newcomer',
      body: 'return false',
    },
    {
      name: 'those who joined by later rules are served first',
      aim: LISTS,
      lua: 'queue/lists.begin_kind',
      body: `for i, other in ipairs(state.lists) do
      if other == kind then
        table.remove(state.lists, i)
      end
    end
    table.insert(state.lists, 1, kind)
    more.changed(state)`,
    },
  ],
  'only its lanes wait for a limit of some lanes': [
    {
      name: 'a newcomer without a lane waits for the share of one',
      firstSeed: 20,
      aim: LISTS_SHARED,
      lua: 'lib/serving.is_next',
      body: `local has_lane = list and list.kind == 'lane'
    return (state.serving == 0 or has_lane) and original(keys, state, call, list, hits)`,
    },
    {
      name: 'a head that a limit of its lane stops stops all',
      firstSeed: 20,
      aim: LISTS_SHARED,
      lua: 'queue/heads.stops_of',
      body: 'return original(state, left, entry) and turn_walk.all',
    },
  ],
  'who waits in a lane is told': [
    {
      name: 'a wake is lost for an interactive waiter before a backlog of others',
      firstSeed: 30,
      aim: { fates: ['lists'], shape: { isPrompt: true } },
      plant: loseWakesOfUrgent,
    },
  ],
  'groups get their shares': [
    {
      name: 'a check of a group that passes others leaves the virtual time as it is',
      aim: { fates: ['lists', 'hits', 'no wait'] },
      lua: 'queue/lists.approve_at_once',
      body: '',
    },
    {
      name: 'the next group is not told that a head has passed it which needs more',
      aim: { fates: ['lists', 'hits'] },
      lua: 'lib/serving.note_next',
      body: `state.stopped_heads = state.stopped_heads or {}
    table.insert(state.stopped_heads, joined)`,
    },
    {
      name: 'the weight of a group does not count when it is served',
      firstSeed: 31,
      aim: LISTS,
      lua: 'queue/turn-walk.key_after',
      body: `if list.kind == 'group' and is_approved then
      return list.key + following.hits
    end
    return original(virtual_time, list, entry, is_approved, following)`,
    },
    {
      name: 'a group that comes back begins before those that have waited',
      aim: LISTS,
      lua: 'queue/lists.add_to',
      body: `local virtual_time = state.virtual_time
    state.virtual_time = 0
    original(keys, state, id, new)
    state.virtual_time = virtual_time`,
    },
    {
      name: 'a group pays for a waiter that has left',
      firstSeed: 43,
      aim: LISTS_LEFT,
      lua: 'queue/lists.key_of_changed',
      body: `return kind == 'group' and key + share_of(now) or original(state, kind, key, before, now)`,
    },
    {
      name: 'the virtual time goes on when nobody waits',
      aim: LISTS,
      lua: 'queue/lists.drop',
      body: `local virtual_time = state.virtual_time
    original(keys, state)
    state.virtual_time = virtual_time`,
    },
    {
      name: 'more may wait of a group than its rules say',
      firstSeed: 259,
      aim: LISTS,
      lua: 'lib/checks.is_group_full',
      body: 'return false',
    },
  ],
  'lists and their heads stay as they are, whatever is lost': [
    {
      name: 'waiters come back without their lists to a key that was lost',
      aim: LISTS_LOST,
      lua: 'queue/queue.rejoin',
      body: `for _, waiter in ipairs(waiters) do
      waiter.list = nil
    end
    original(keys, state, call, waiters)`,
    },
    {
      name: 'heads that were removed stay away',
      firstSeed: 107,
      aim: LISTS_LOST,
      lua: 'queue/lists.repair',
      // Without a state that names the lists, scripts would fail.
      body: `if not state.lists then
      original(keys, state, waiting_tickets)
    end`,
    },
    {
      name: 'who leaves stays the head of its list',
      aim: LISTS_LEFT,
      lua: 'queue/lists.remove_from',
      body: `for _, ticket in ipairs(tickets) do
      local start = '[' .. id .. ' ' .. ticket
      for _, entry in ipairs(redis.call('ZRANGE', keys.queue, start .. ':', start .. ';', 'BYLEX')) do
        redis.call('ZREM', keys.queue, entry)
      end
    end`,
    },
    {
      name: 'the next of a list is not its head once the first one is approved',
      firstSeed: 31,
      aim: LISTS,
      lua: 'queue/turn-walk.write',
      body: `for _, list in ipairs(self.touched) do
      list.is_over = true
    end
    original(self, state)`,
    },
    {
      name: 'places of the dead are taken away with their entries left',
      aim: { fates: ['lists', 'kill'] },
      lua: 'queue/queue.leave_lists',
      body: '',
    },
  ],
};
