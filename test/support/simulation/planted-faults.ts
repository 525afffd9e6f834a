import type { FurtherLimit } from '../further-limits.js';
import { ApprovalBatches } from '../../../src/limiter/approval-batches.js';
import { Waiter } from '../../../src/limiter/waiter.js';
import { Lease } from '../../../src/redis/waiting/lease.js';
import { LocalQueue } from '../../../src/redis/waiting/local-queue.js';
import { WaitingRoom } from '../../../src/redis/waiting/waiting-room.js';
import { Places } from '../../../src/redis/waiting/places.js';
import { WakeNumbers } from '../../../src/redis/waiting/wake-numbers.js';
import { WindowLeader } from '../../../src/redis/waiting/window-leader.js';
import { WindowTiming } from '../../../src/redis/waiting/window-timing.js';
import { Withdrawals } from '../../../src/redis/waiting/withdrawals.js';
import { editedFragment } from '../edited-fragment.js';
import type { Aim, Scripts } from './schedule.js';
import { simulatedScripts } from './stored-key.js';

/** A fault that this project had, or could have had. */
export interface PlantedFault {
  readonly name: string;
  /** Puts the fault into the code of this process. Returns a function that takes it out again. */
  readonly plant?: () => () => void;
  /** The scripts with it, where it is one of Lua. */
  readonly scripts?: () => Scripts;
  /** It takes over 40 schedules to find it from seed 1 on, so only full runs look for it. */
  readonly isRare?: boolean;
  /** What it takes to find it, where many things have to come together. */
  readonly aim?: Aim;
  /** Shortly before a seed that shows it, if the search from 1 on would take many schedules. */
  readonly firstSeed?: number;
}

const TWO_LIMITS: readonly FurtherLimit[] = [
  { name: 'a', windowMillis: 200, maximum: 3, counts: 'hits', keepsReleased: false },
  { name: 'b', windowMillis: 1000, maximum: 2, counts: 'requests', keepsReleased: true },
];

const TWO_RETURNING = TWO_LIMITS.map((limit) => ({ ...limit, keepsReleased: false }));

interface ClassOf<Instance> {
  readonly prototype: Instance;
}

function put<Instance extends object>(
  { prototype }: ClassOf<Instance>,
  name: keyof Instance,
  change: (original: PropertyDescriptor) => PropertyDescriptor,
): () => void {
  const original = Object.getOwnPropertyDescriptor(prototype, name)!;
  Object.defineProperty(prototype, name, { configurable: true, ...change(original) });
  return () => Object.defineProperty(prototype, name, original);
}

/** Replaces a method of a class. Returns a function that undoes it. */
function method<Instance extends object, Name extends keyof Instance>(
  of: ClassOf<Instance>,
  name: Name,
  change: (original: Instance[Name]) => Instance[Name],
): () => void {
  return put(of, name, ({ value }) => ({ value: change(value as Instance[Name]) }));
}

/** @throws Error unless the text is there once */
function edited(path: string, text: string, other: string): () => Scripts {
  return () => simulatedScripts(editedFragment(path, [text, other]));
}

/** No reply to a settle call tells that a place is missing, which makes up for other faults. */
const PLACES_UNTOLD = ['settle', ['own and own.places or 0', '1000000']] as const;

export const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    name: 'an approval that crosses a leaving client is kept',
    isRare: true,
    firstSeed: 160,
    aim: { fates: ['leave', 'slow ticks'] },
    plant: () =>
      method(ApprovalBatches, 'approve', () => (waiter) => {
        waiter.approveFromQueue();
      }),
  },
  {
    name: 'an approval that crosses a leaving client is taken for a place in the queue',
    scripts: edited('withdraw', 'approvals.release(keys, state, call, ids, true)', '0'),
  },
  {
    name: "a wake before the ticket's reply is lost",
    isRare: true,
    firstSeed: 310,
    aim: { shape: { isPrompt: true, windowMillis: 200 } },
    plant: () => {
      let isInWake = false;
      const undo = [
        method(LocalQueue, 'onWake', (onWake) => {
          return function (this: LocalQueue, wake) {
            isInWake = true;
            onWake.call(this, wake);
            isInWake = false;
          };
        }),
        // It finds only those who have their tickets, and nobody asks for the others.
        method(Places, 'get', (get) => {
          return function (this: Places, requestId) {
            return isInWake && this.asking(requestId) ? undefined : get.call(this, requestId);
          };
        }),
      ];
      return () => {
        for (const each of undo) each();
      };
    },
    scripts: () => simulatedScripts(editedFragment(...PLACES_UNTOLD)),
  },
  {
    name: 'a wake has the number of the last one, so that nobody asks for one that went missing',
    isRare: true,
    firstSeed: 490,
    aim: { fates: ['drop'], shape: { isPrompt: true } },
    scripts: () =>
      simulatedScripts({
        ...editedFragment('lib/instance', ["'wake', state.wake + 1", "'wake', state.wake"]),
        ...editedFragment(...PLACES_UNTOLD),
      }),
  },
  {
    name: 'the number of a reply tells nothing, so that nobody asks for a last wake that went missing',
    isRare: true,
    firstSeed: 490,
    aim: { fates: ['drop'], shape: { isPrompt: true } },
    plant: () => method(WakeNumbers, 'replied', () => () => 'news'),
    scripts: () => simulatedScripts(editedFragment(...PLACES_UNTOLD)),
  },
  {
    name: 'a lease is not renewed',
    aim: { shape: { isPrompt: true, windowMillis: 4000 } },
    plant: () => put(Lease, 'renewalDueAt', () => ({ get: () => Infinity })),
  },
  {
    name: 'a lease is renewed before the recovery for other replicas that were cut off',
    isRare: true,
    firstSeed: 100,
    aim: { fates: ['away'] },
    scripts: edited('renew', 'or not recovery.has_current_lease(replica, call)', ''),
  },
  {
    name: 'a lease is renewed where Redis has lost it',
    isRare: true,
    firstSeed: 880,
    aim: { fates: ['tear queue'], shape: { isPrompt: true, windowMillis: 4000, leaseMillis: 600 } },
    scripts: edited(
      'renew',
      'if not replica or replica.places',
      'replica = replica or { lease_ends = call.now_ms + call.lease, places = known_places }\n  if replica.places',
    ),
  },
  {
    name: 'a lease is taken for renewed where it is not',
    isRare: true,
    firstSeed: 870,
    plant: () => method(LocalQueue, 'leaseDoubted', () => () => undefined),
  },
  {
    name: 'a lost key does not wait for those who come back',
    isRare: true,
    firstSeed: 20,
    aim: { fates: ['lose memory'], shape: { isPrompt: true } },
    scripts: edited('lib/recovery', 'if recovery.is_on(state) or', 'if true or'),
  },
  {
    name: 'a newcomer overtakes after a release',
    scripts: edited('lib/change', 'serving.serve(keys, state, call)', ''),
  },
  {
    name: 'a newcomer comes before the queue at the end of a window',
    scripts: edited('lib/checks', '  serving.serve(keys, state, call)\n', ''),
  },
  {
    name: 'a window leader that dies before it wakes anybody is awaited',
    firstSeed: 60,
    aim: { fates: ['kill'], shape: { isPrompt: true } },
    plant: () =>
      method(WindowTiming, 'dueAt', (dueAt) => {
        return function (this: WindowTiming, isLeading) {
          return isLeading ? dueAt.call(this, true) : Infinity;
        };
      }),
  },
  {
    name: 'a window leader stays in office when nobody waits any more',
    plant: () => method(WindowLeader, 'resign', () => () => Promise.resolve()),
  },
  {
    name: 'who is put back stands behind those who came later',
    isRare: true,
    firstSeed: 30,
    aim: { fates: ['lose memory', 'rules'] },
    scripts: edited(
      'queue/queue',
      'state.unsorted = 1\n  end\n  state.has_rejoined',
      'end\n  state.has_rejoined',
    ),
  },
  {
    name: 'a check that is sent again counts again',
    firstSeed: 20,
    scripts: edited('lib/checks', 'call.is_sent_again and find_decided(keys, call, batch) or', ''),
  },
  {
    name: 'a check with hits is approved if there is room for one',
    aim: { fates: ['hits'] },
    scripts: edited(
      'limits/fixed-window',
      'return self:taken_of(hits) <= self:free()',
      'return (self.name and self:taken_of(hits) or 1) <= self:free()',
    ),
  },
  {
    name: 'a head that needs more hits than are free is overtaken by a newcomer',
    firstSeed: 10,
    aim: { fates: ['hits'] },
    scripts: edited('lib/serving', 'return state.serving == 0', 'return true'),
  },
  {
    name: 'a newcomer is not told of a waiter whose hits did not fit when it came',
    firstSeed: 100,
    aim: { fates: ['hits'] },
    scripts: edited('lib/checks', '    serving.note_waiters(state)\n', ''),
  },
  {
    name: 'a newcomer is not told of a head whose hits did not fit when its turn came',
    firstSeed: 10,
    aim: { fates: ['hits'] },
    scripts: edited(
      'lib/serving',
      'if tally.living > 0 then\n    serving.note_waiters(state)',
      'if tally.living > 0 then\n    state.serving = 0',
    ),
  },
  {
    name: 'those behind a head whose hits did not fit are not served when it leaves',
    firstSeed: 140,
    aim: { fates: ['hits', 'leave'] },
    scripts: edited(
      'lib/serving',
      'state.made_room or state.serving == 1) then',
      'state.made_room) then',
    ),
  },
  {
    name: 'a head that needs more hits than are free is overtaken by a waiter',
    aim: { fates: ['hits'] },
    scripts: edited(
      'limits/key-limits',
      'of_limit.free = of_limit.free - limit:taken_of(hits)',
      'of_limit.free = of_limit.free - 1',
    ),
  },
  {
    name: 'a release gives back one of several hits',
    aim: { fates: ['hits', 'release'] },
    scripts: edited(
      'limits/own-ids',
      'hits = read_hits(keys, state, id)\n  forget_hits',
      'hits = 1\n  forget_hits',
    ),
  },
  {
    name: 'a correction that makes room does not serve the queue',
    firstSeed: 10,
    aim: { fates: ['amend'] },
    scripts: edited(
      'lib/approvals',
      'id, hits, false)\n  if key_limits.used_of_all(state) < used_before then',
      'id, hits, false)\n  if false then',
    ),
  },
  {
    name: 'a waiter that is put back needs one hit',
    firstSeed: 40,
    aim: { fates: ['hits'] },
    scripts: edited('settle', 'hits = tonumber(hits) or 1', 'hits = 1'),
  },
  {
    name: 'a lapse is not timed',
    aim: { fates: ['hold'], shape: { isPrompt: true, windowMillis: 4000 } },
    scripts: edited(
      'limits/fixed-window',
      'if self.keeps or first_lapse == 0 then\n    return window_end',
      'if true then\n    return window_end',
    ),
  },
  {
    name: 'a lapse makes room that nobody gets',
    aim: { fates: ['hold'] },
    scripts: edited('lib/holds', 'if #ids > 0 or held_ids < state.held_ids then', 'if false then'),
  },
  {
    name: 'those who wait are not told of a lapse that comes sooner',
    isRare: true,
    firstSeed: 410,
    aim: { fates: ['hold'], shape: { isPrompt: true, windowMillis: 4000 } },
    scripts: edited('lib/news', 'return state.known_room_at and', 'return false and'),
  },
  {
    name: 'a hold counts twice in a new window',
    aim: { fates: ['hold'] },
    scripts: edited(
      'limits/fixed-window',
      'self.used = self:held(state)',
      'self.used = (self.name and 1 or 2) * self:held(state)',
    ),
  },
  {
    name: 'a hold is dropped at the end of a window',
    aim: { fates: ['hold'] },
    scripts: edited(
      'limits/fixed-window',
      'self.used = self:held(state)',
      'self.used = self.name and self:held(state) or 0',
    ),
  },
  {
    name: 'a key with a hold becomes idle',
    aim: { fates: ['hold'], shape: { windowMillis: 20 } },
    scripts: edited(
      'lib/instance',
      'or stored.has_holds(state) or room.is_closed(state)',
      'or room.is_closed(state)',
    ),
  },
  {
    name: 'a key with a hold expires before it',
    isRare: true,
    firstSeed: 20,
    aim: { fates: ['hold'], shape: { windowMillis: 20, leaseMillis: 600 } },
    scripts: edited('lib/instance', 'state.last_lapse, state.paused_until', 'state.paused_until'),
  },
  {
    name: 'a renewal holds again what has lapsed',
    aim: { fates: ['hold'] },
    scripts: edited(
      'lib/holds',
      'if not hits_before then\n    return nil',
      'if not hits_before then\n    if millis then\n      holds.add(keys, state, call, id, 1, millis)\n    end\n    return millis',
    ),
  },
  {
    name: 'a renewal leaves the lapse where it was',
    aim: { fates: ['hold'] },
    scripts: edited('lib/holds', '    lapses = call.now_ms + millis\n  elseif', '  elseif'),
  },
  {
    name: 'a release leaves the hold',
    aim: { fates: ['hold'] },
    scripts: edited(
      'lib/holds',
      "redis.call('HDEL', holds.name(keys), id)\n    local is_last",
      'local is_last',
    ),
  },
  {
    name: 'a replica that stood still takes a hold that has lapsed for one that lasts',
    firstSeed: 40,
    aim: { fates: ['hold', 'freeze'] },
    plant: () =>
      method(
        LocalQueue,
        'onWake',
        (onWake) =>
          function (this: LocalQueue, wake) {
            onWake.call(this, { ...wake, at: Number.MAX_SAFE_INTEGER });
          },
      ),
  },
  {
    name: 'a settle does not see held approvals',
    aim: { fates: ['hold', 'drop'] },
    scripts: edited('lib/approvals', 'if lapses > now_ms then', 'if false then'),
  },
  {
    name: 'a waiter that is put back is not held',
    aim: { fates: ['hold', 'lose memory'] },
    scripts: edited('settle', 'hold = tonumber(hold),', ''),
  },
  {
    name: 'only the first withdrawal of a replica is made',
    plant: () =>
      method(Withdrawals, 'add', (add) => {
        const seen = new WeakSet();
        return function (this: Withdrawals, key, requestIds) {
          if (!seen.has(this)) add.call(this, key, requestIds);
          seen.add(this);
        };
      }),
  },
  {
    name: 'a late settle puts back who was released',
    isRare: true,
    firstSeed: 140,
    aim: { fates: ['release', 'drop'] },
    scripts: edited(
      'lib/past-requests',
      "chunks.call('SADD', keys.past_requests[state.generation], ids)\n  state.has_past = true",
      '',
    ),
  },
  {
    name: 'the places of the dead are taken for those of the living',
    firstSeed: 30,
    aim: { fates: ['freeze', 'kill'] },
    scripts: edited('queue/replicas', 'return replica.lease_ends > now_ms', 'return true'),
  },
  {
    name: 'an override outlives the rules that forbid it',
    scripts: edited('lib/checks', 'and own.max <= max_ceiling', ''),
  },
  {
    name: 'a live key does not take a higher maximum of its rules',
    scripts: edited(
      'lib/checks',
      'return changes and of_rules or current',
      'return changes and math.min(of_rules, current) or current',
    ),
  },
  {
    name: 'those who wait have nothing of a higher maximum',
    scripts: edited('lib/checks', 'state.made_room or max > own.max', 'state.made_room'),
  },
  {
    name: 'a wait that is over goes on',
    isRare: true,
    aim: { fates: ['limited waits'], shape: { isPrompt: true } },
    plant: () => method(Waiter, 'onceExpired', () => () => undefined),
  },
  {
    name: 'a turn is foretold without those who wait before',
    firstSeed: 30,
    scripts: edited('limits/fixed-window', 'local missing = before + ', 'local missing = '),
  },
  {
    name: 'a wait is over too early',
    plant: () =>
      method(Waiter, 'onceExpired', (onceExpired) => {
        return function (this: Waiter, clock, onExpired) {
          const early = {
            now: () => clock.now(),
            after: (millis: number, callback: () => void) => clock.after(millis / 2, callback),
          };
          onceExpired.call(this, early, onExpired);
        };
      }),
  },
  {
    name: 'a dead replica is taken for a Redis that was down',
    isRare: true,
    firstSeed: 360,
    aim: {
      fates: ['waits at one', 'freeze'],
      shape: { isPrompt: true, windowMillis: 1000, leaseMillis: 600 },
    },
    scripts: edited('lib/recovery', 'and not history.was_up_since(call, silent_since)', ''),
  },
  {
    name: 'a key that idled out is taken for one that Redis has lost',
    isRare: true,
    firstSeed: 20,
    scripts: edited('lib/checks', 'not state and not idle and terms', 'not state and terms'),
    aim: { shape: { windowMillis: 20 } },
  },
  {
    name: 'approvals are forgotten when windows become shorter',
    firstSeed: 80,
    aim: { fates: ['windows', 'lose'], shape: { isPrompt: false, windowMillis: 1000 } },
    scripts: edited(
      'lib/past-requests',
      'generations.windows_share_set(call, ended.window)',
      'generations.windows_share_set(call, call.rules.own.window)',
    ),
  },
  {
    name: 'a maximum of other rules counts before their windows do',
    firstSeed: 10,
    scripts: edited('lib/checks', 'of_window and in_force.may', 'in_force.may'),
  },
  {
    name: 'a torn queue does not wait for those who come back',
    firstSeed: 30,
    scripts: edited('queue/queue', 'recovery.begin_after_loss_of_queue(keys, state, call)', ''),
    aim: { fates: ['tear queue'], shape: { isPrompt: true } },
  },
  {
    name: 'a check takes from one of several limits',
    aim: { shape: { further: TWO_LIMITS } },
    scripts: edited(
      'limits/key-limits',
      "ask_all(state, 'take',",
      "ask_all({ limits = { unpack(state.limits, 1, 2) } }, 'take',",
    ),
  },
  {
    name: 'a check looks at the first of several limits',
    firstSeed: 40,
    aim: { fates: ['hits'], shape: { further: TWO_LIMITS.toReversed() } },
    scripts: edited(
      'limits/key-limits',
      'function key_limits.fit(state, hits)\n  for _, limit in ipairs(state.limits) do',
      'function key_limits.fit(state, hits)\n  for _, limit in ipairs({ unpack(state.limits, 1, 2) }) do',
    ),
  },
  {
    name: 'the queue is served without a look at further limits',
    aim: { shape: { further: TWO_LIMITS } },
    scripts: edited(
      'limits/key-limits',
      'for i, limit in ipairs(state.limits) do\n    local of_limit = left[i]\n    local fits',
      'for i, limit in ipairs({ state.own }) do\n    local of_limit = left[i]\n    local fits',
    ),
  },
  {
    name: 'a limit of requests counts hits',
    aim: { fates: ['hits'], shape: { further: TWO_LIMITS } },
    scripts: edited(
      'limits/fixed-window',
      "return self.counts == 'hits' and hits or 1",
      'return hits',
    ),
  },
  {
    name: 'the end of a further window makes no room',
    aim: { shape: { further: TWO_LIMITS } },
    scripts: edited(
      'lib/instance',
      'more.changed(state)\n    state.made_room = true',
      'more.changed(state)',
    ),
  },
  {
    name: 'the end of a further window is not timed',
    aim: { shape: { isPrompt: true, windowMillis: 4000, further: TWO_LIMITS } },
    scripts: edited(
      'lib/room',
      'for _, limit in ipairs(state.limits) do\n    local time = limit:room_at(state)',
      'for _, limit in ipairs({ state.own }) do\n    local time = limit:room_at(state)',
    ),
  },
  {
    name: 'those who wait for hits are woken when the last of several windows ends',
    isRare: true,
    aim: { fates: ['hits'], shape: { isPrompt: true, windowMillis: 4000, further: TWO_LIMITS } },
    scripts: edited(
      'lib/room',
      'more_at = math.min(more_at, time)',
      'more_at = math.max(more_at == math.huge and 0 or more_at, time)',
    ),
  },
  {
    name: 'a further window does not count held approvals when it begins',
    aim: { fates: ['hold'], shape: { further: TWO_LIMITS } },
    scripts: edited(
      'limits/fixed-window',
      'self.used = self:held(state)',
      'self.used = self.name and 0 or self:held(state)',
    ),
  },
  {
    name: 'a limit that keeps what is released counts what is held',
    aim: { fates: ['hold'], shape: { further: TWO_LIMITS } },
    scripts: edited(
      'limits/fixed-window',
      'if self.keeps then\n    return 0',
      'if false then\n    return 0',
    ),
  },
  {
    name: 'a release returns to the first of several limits',
    aim: { fates: ['release'], shape: { further: TWO_RETURNING } },
    scripts: edited(
      'limits/key-limits',
      "ask_all(state, 'give_back',",
      "ask_all({ limits = { unpack(state.limits, 1, 2) } }, 'give_back',",
    ),
  },
  {
    name: 'a limit that keeps what is released gets it back',
    aim: { fates: ['release'], shape: { further: TWO_LIMITS } },
    scripts: edited('limits/fixed-window', 'and (is_unused or not self.keeps)', ''),
  },
  {
    name: 'a limit that keeps what is released keeps what nobody got',
    isRare: true,
    aim: { fates: ['leave', 'slow ticks'], shape: { further: TWO_LIMITS } },
    scripts: edited('limits/fixed-window', '(is_unused or not self.keeps)', 'not self.keeps'),
  },
  {
    name: 'a correction leaves further limits as they are',
    aim: { fates: ['amend', 'hits'], shape: { further: TWO_LIMITS } },
    scripts: edited(
      'limits/fixed-window',
      'self.used = self.used + self:taken_of(hits) - before',
      'self.used = self.used + (self.name and 0 or self:taken_of(hits) - before)',
    ),
  },
  {
    name: 'those who wait for a limit that was removed wait on',
    aim: { fates: ['limits'], shape: { isPrompt: true, further: TWO_LIMITS } },
    scripts: edited('settle', '  in_force.take_for_waiters(keys, state, call)\n', ''),
  },
  {
    name: 'a replica does not tell Redis of new rules while its requests wait',
    firstSeed: 680,
    aim: { fates: ['limits'], shape: { isPrompt: true, windowMillis: 4000, further: TWO_LIMITS } },
    plant: () => method(WaitingRoom, 'limitsChanged', () => () => undefined),
  },
  {
    name: 'a limit that gets another maximum forgets its approvals',
    aim: { fates: ['limits'], shape: { further: TWO_LIMITS } },
    scripts: edited('limits/key-limits', 'if kept and kept.counts', 'if false and kept.counts'),
  },
  {
    name: 'a limit whose window becomes so short that it is over forgets its approvals',
    aim: { fates: ['limits'], shape: { further: TWO_LIMITS } },
    scripts: edited(
      'limits/key-limits',
      'kept:continue_as(limit, now_ms)\n',
      'kept:continue_as(limit, now_ms)\n      if limit.start ~= kept.start then\n        limit.used = 0\n' +
        "        redis.call('UNLINK', limit.ids.built_name(keys, limit))\n      end\n",
    ),
  },
  {
    name: 'a limit that comes back has approvals from before the key was idle',
    isRare: true,
    firstSeed: 1840,
    aim: { fates: ['limits', 'rules'], shape: { isPrompt: false, windowMillis: 5 } },
    scripts: edited(
      'limits/key-limits',
      "redis.call('UNLINK', limit.ids.built_name(keys, limit))\n      limit.used",
      'limit.used',
    ),
  },
  {
    name: 'a key becomes idle before the last of its windows ends',
    aim: { shape: { windowMillis: 5, further: TWO_LIMITS } },
    scripts: edited(
      'lib/stored',
      'at = math.max(at, state.limits[i].start + state.limits[i].window)',
      '',
    ),
  },
  {
    name: 'the queue is served in a pause',
    aim: { fates: ['pause'] },
    scripts: edited(
      'lib/serving',
      'if not pause.is_on(state) then\n      serve',
      'if true then\n      serve',
    ),
  },
  {
    name: 'the end of a pause makes no room',
    aim: { fates: ['pause'], shape: { windowMillis: 4000 } },
    scripts: edited(
      'lib/pause',
      "more.set(state, 'paused_until', 0)\n    state.made_room = true",
      "more.set(state, 'paused_until', 0)",
    ),
  },
  {
    name: 'a length that a request sets counts in the current window',
    aim: { fates: ['window override'] },
    scripts: edited(
      'lib/checks',
      "more.set(state, 'next_window', length ~= state.own.window and length or 0)",
      'state.own.window = length',
    ),
  },
  {
    name: 'a length that a request has set lasts for one window',
    aim: { fates: ['window override'], shape: { windowMillis: 20 } },
    scripts: edited('lib/in-force', 'state.window_is_set, state.limits_changed = true, true', ''),
  },
  {
    name: 'a hold lasts longer after the clock has gone back',
    aim: { fates: ['clock back', 'hold'] },
    scripts: edited('lib/instance', 'holds.shorten(keys, state, call)', ''),
  },
  {
    name: 'a pause lasts longer after the clock has gone back',
    aim: { fates: ['clock back', 'pause'] },
    scripts: edited(
      'lib/clock-step',
      "more.set(state, 'paused_until', state.paused_until - state.set_at + now_ms)",
      '',
    ),
  },
  {
    name: 'a window that begins in the future is over',
    aim: { fates: ['clock back'] },
    scripts: edited(
      'limits/fixed-window',
      'self.start = math.min(self.start, now_ms)',
      'self.start = self.name and math.min(self.start, now_ms) or self.start',
    ),
  },
  {
    name: 'a window of a further limit that begins in the future is over',
    aim: { fates: ['clock back'], shape: { further: TWO_LIMITS } },
    scripts: edited(
      'limits/fixed-window',
      'self.start = math.min(self.start, now_ms)',
      'self.start = self.name and self.start or math.min(self.start, now_ms)',
    ),
  },
  {
    name: 'a lease lasts longer after the clock has gone back',
    aim: { fates: ['clock back'] },
    scripts: edited('queue/queue', 'replicas.cut_leases(state.tally, call)', ''),
  },
  {
    name: 'a check with a waiter leaves no note of the time of a lease',
    firstSeed: 490,
    aim: { fates: ['clock back'] },
    scripts: edited('queue/queue', 'state.set_at = call.now_ms', ''),
  },
  {
    name: 'a settle tells more than the length of a hold after the clock has gone back',
    firstSeed: 740,
    aim: { fates: ['clock back', 'hold'] },
    scripts: edited('lib/approvals', 'math.min(lapses, now_ms + millis)', 'lapses'),
  },
  {
    name: 'a ticket is given again in an idle key after the clock has gone back',
    isRare: true,
    firstSeed: 33700,
    aim: { fates: ['clock back'] },
    scripts: edited('lib/instance', 'if call.now_us <= idle.ticket then', 'if false then'),
  },
  {
    name: 'keys of a queue are given no expiry',
    scripts: edited('lib/instance', "redis.call('PEXPIREAT', name, until_ms)", ''),
  },
];
