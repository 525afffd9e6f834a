import type { Algorithm } from '../../../src/limiter/limits.js';
import { parseClaim } from '../../../src/limiter/claims.js';
import { Waiter } from '../../../src/limiter/waiter.js';
import { Lease } from '../../../src/redis/waiting/lease.js';
import { LocalQueue } from '../../../src/redis/waiting/local-queue.js';
import { QueueLease } from '../../../src/redis/waiting/queue-lease.js';
import { WaitingRoom } from '../../../src/redis/waiting/waiting-room.js';
import { WakeNumbers } from '../../../src/redis/waiting/wake-numbers.js';
import { WindowLeader } from '../../../src/redis/waiting/window-leader.js';
import { WindowTiming } from '../../../src/redis/waiting/window-timing.js';
import { Withdrawals } from '../../../src/redis/waiting/withdrawals.js';
import type { FurtherLimit } from '../further-limits.js';
import { calendarNamed } from './calendars.js';
import { getter, method } from './method-fault.js';
import { LONGEST_GRACE_MILLIS } from './punctuality.js';
import { KEPT_PLACE_FAULTS } from './planted-kept-faults.js';
import { LISTS_FAULTS } from './planted-lists-faults.js';
import type { PlantedFault } from './planted-fault.js';

const TWO_LIMITS: readonly FurtherLimit[] = [
  { name: 'a', windowMillis: 200, maximum: 3, counts: 'hits', keepsReleased: false },
  { name: 'b', windowMillis: 1000, maximum: 2, counts: 'requests', keepsReleased: true },
];

const SLIDING: Algorithm = { name: 'sliding_window', steps: 3 };
const BUCKET: Algorithm = { name: 'token_bucket', burst: 3 };
/** Days of 460 to 500 ms, and of 23 to 25 ms. */
const DAYS: Algorithm = byCalendar('Short/20/0');
const SHORT_DAYS: Algorithm = byCalendar('Short/1/0');
const FURTHER_DAYS: readonly FurtherLimit[] = [
  {
    name: 'a',
    windowMillis: 500,
    maximum: 1,
    algorithm: DAYS,
    counts: 'hits',
    keepsReleased: false,
  },
];

function byCalendar(timeZone: string): Algorithm {
  return { name: 'fixed_window', calendar: calendarNamed({ unit: 'day', timeZone }) };
}

/** A caller does not notice that Redis has lost a place of it, which makes up for other faults. */
function withPlacesUntold(plant: () => () => void): () => () => void {
  return () => {
    const undo = [plant(), getter(WakeNumbers, 'isAwaiting', true)];
    return () => {
      for (const each of undo) each();
    };
  };
}

/** Faults by the invariant that they break. */
export const PLANTED_FAULTS: Readonly<Record<string, readonly PlantedFault[]>> = {
  ...KEPT_PLACE_FAULTS,
  ...LISTS_FAULTS,
  'checks are decided as by the model': [
    {
      name: 'a check with hits is approved if there is room for one',
      aim: { fates: ['hits'] },
      lua: 'limits/fixed-window.fits',
      body: 'return original(self, self.name and hits or 1)',
    },
    {
      name: 'a turn is foretold without those who wait before',
      aim: { fates: ['limited waits'] },
      lua: 'limits/fixed-window.micros_to_turn',
      body: 'return original(self, state, call, 0, hits, later)',
    },
  ],
  'approvals count in each limit as in the model': [
    {
      name: 'a check takes from one of several limits',
      aim: { shape: { further: TWO_LIMITS } },
      lua: 'limits/key-limits.take',
      body: `local limits = state.limits
    state.limits = { state.own }
    original(keys, state, call, id, hits, is_held)
    state.limits = limits`,
    },
    {
      name: 'a limit that keeps what is released gets it back',
      aim: { fates: ['release'], shape: { further: TWO_LIMITS } },
      lua: 'limits/fixed-window.give_back',
      body: 'return original(self, keys, state, id, is_held, true)',
    },
  ],
  'no span of a sliding window has more than its maximum': [
    {
      name: 'a step counts for one step too few',
      aim: { shape: { algorithm: SLIDING } },
      lua: 'limits/sliding-window.move',
      body: `self.steps = self.steps - 1
    local made_room = original(self, now_us)
    self.steps = self.steps + 1
    self.generation = self:generation_of(self.number)
    return made_room`,
    },
    {
      name: 'what counts is forgotten if the clock goes back by a part of the window',
      firstSeed: 9,
      aim: { fates: ['clock back'], shape: { algorithm: SLIDING, windowMillis: 500 } },
      lua: 'limits/sliding-window.begin_by',
      body: 'if self.step_start > now_ms then self:clear() end\nreturn original(self, now_ms)',
    },
    {
      name: 'what was approved by another algorithm does not count',
      aim: { fates: ['algorithms'] },
      lua: 'limits/sliding-window.carry',
      body: '',
    },
  ],
  'room of a sliding window comes back at most a step late': [
    {
      name: 'a step counts for one step too many',
      aim: { shape: { algorithm: SLIDING } },
      lua: 'limits/sliding-window.move',
      body: `self.steps = self.steps + 1
    local made_room = original(self, now_us)
    self.steps = self.steps - 1
    self.generation = self:generation_of(self.number)
    return made_room`,
    },
    {
      name: 'the end of a step makes no room for those who wait',
      aim: { shape: { algorithm: SLIDING } },
      lua: 'limits/sliding-window.move',
      body: 'original(self, now_us)\nreturn false',
    },
    {
      name: 'those who wait are told when the newest step ends to count',
      aim: { shape: { algorithm: SLIDING, maxRequests: 3 } },
      lua: 'limits/sliding-window.room_at',
      body: 'return self.step_start + (self.steps + 1) * self.step',
    },
    {
      name: 'ids are forgotten with their generation',
      firstSeed: 10,
      aim: { fates: ['release'], shape: { algorithm: SLIDING, windowMillis: 200 } },
      lua: 'limits/recent-ids.drop_ended',
      body: `if limit.generation > limit.kept_generation then
      redis.call('UNLINK', unpack(recent_ids.built_names(keys, limit)))
    end
    original(keys, state, limit)`,
    },
  ],
  'no span has more than the burst of a bucket and what drains in that time': [
    {
      name: 'a bucket drains below 0 while nobody waits',
      aim: { shape: { algorithm: BUCKET, maxRequests: 3 } },
      lua: 'limits/token-bucket.move',
      body: `original(self, now_us)
    self:begin_serving()
    return self:fits(1)`,
    },
    {
      name: 'a bucket stays below 0 when nobody waits any more',
      firstSeed: 39,
      aim: { shape: { algorithm: BUCKET, maxRequests: 3 } },
      lua: 'limits/token-bucket.end_serving',
      body: '',
    },
    {
      name: 'a new pace counts from the last approval on',
      firstSeed: 10,
      aim: { fates: ['override'], shape: { algorithm: BUCKET } },
      lua: 'limits/token-bucket.set_max',
      body: 'self.max = max',
    },
    {
      name: 'a bucket forgets what a lower maximum cuts off',
      firstSeed: 14,
      aim: { fates: ['override'], shape: { algorithm: BUCKET, maxRequests: 3 } },
      lua: 'limits/token-bucket.set_level',
      body: 'original(self, level, 0)',
    },
    {
      name: 'a bucket drains while the clock goes back',
      firstSeed: 66,
      aim: { fates: ['clock back'], shape: { algorithm: BUCKET } },
      lua: 'limits/token-bucket.begin_by',
      body: 'if self.time > now_ms * 1000 then self.level = 0 end\nreturn original(self, now_ms)',
    },
  ],
  'a release brings approvals of a bucket no closer than its pace': [
    {
      name: 'a release gives a bucket back what has drained',
      firstSeed: 13,
      aim: { fates: ['release'], shape: { algorithm: BUCKET, maxRequests: 3 } },
      lua: 'limits/token-bucket.return_hits',
      body: 'original(self, hits, self.now_us)',
    },
    {
      name: 'a release gives back what was taken at another pace',
      firstSeed: 16,
      aim: { fates: ['release', 'override'], shape: { algorithm: BUCKET, maxRequests: 3 } },
      lua: 'limits/token-bucket.return_hits',
      body: `local pace_since = self.pace_since
    self.pace_since = 0
    original(self, hits, time)
    self.pace_since = pace_since`,
    },
    {
      name: 'an approval can be released twice',
      aim: { fates: ['release'], shape: { algorithm: BUCKET, maxRequests: 3 } },
      lua: 'limits/recent-ids.remove',
      body: '',
    },
  ],
  'a day of a calendar ends when its caller says, and has no more than the maximum': [
    {
      name: 'a day lasts as long as the longest',
      aim: { shape: { algorithm: DAYS } },
      lua: 'limits/calendar-window.roll',
      body: `local begins = original(self, state, now_ms)
    self.ends_at = self.start + self.window
    return begins`,
    },
    {
      name: 'a day begins again by a caller that does not know of it',
      firstSeed: 12,
      aim: { shape: { algorithm: SHORT_DAYS, isPrompt: false } },
      lua: 'limits/calendar-window.move',
      body: `if self.windows and self.windows.ends ~= self.ends_at then self:clear() end
    return original(self, now_us, state)`,
    },
    {
      name: 'a call goes by days that are over',
      aim: { shape: { algorithm: SHORT_DAYS } },
      lua: 'lib/calendars.require_current',
      body: '',
    },
    {
      name: 'what counts is forgotten if the clock goes back over the start of a day',
      firstSeed: 23,
      aim: { fates: ['clock back'], shape: { algorithm: DAYS, isPrompt: false } },
      lua: 'limits/calendar-window.begin_by',
      body: `local is_later = original(self, now_ms, set_at)
    if is_later then self:clear() end
    return is_later`,
    },
    {
      name: 'a turn on a later day is foretold by the longest days',
      firstSeed: 16,
      aim: { fates: ['limited waits'], shape: { algorithm: DAYS } },
      lua: 'limits/calendar-window.end_after',
      body: 'return self:ends() + windows * self.window',
    },
    {
      name: 'a lost day lasts as long as the longest if the rules have another limit',
      aim: { fates: ['lose memory', 'algorithms'], shape: { algorithm: DAYS } },
      lua: 'limits/calendar-window.restore_full',
      body: 'self.used = millis_left > 0 and self.max or 0',
    },
    {
      name: 'the end of a day makes no room for those who wait',
      aim: { shape: { further: FURTHER_DAYS } },
      lua: 'limits/calendar-window.roll',
      body: 'original(self, state, now_ms)\nreturn false',
    },
  ],
  'a report of what remains makes no room, and counts until it ends': [
    {
      name: 'a report of more than is left makes room',
      aim: { fates: ['reports'] },
      lua: 'limits/fixed-window.report',
      body: `self.used = math.min(self.used, math.max(0, self.max - remaining))
    original(self, state, call, remaining, millis)`,
    },
    {
      name: 'a release during a report makes room',
      firstSeed: 86,
      aim: { fates: ['reports', 'release'] },
      lua: 'limits/fixed-window.give_back',
      body: `local floor = self.floor
    self.floor = 0
    local is_given_back = original(self, keys, state, id, is_held, is_unused)
    self.floor = floor
    return is_given_back`,
    },
    {
      name: 'a report that ends sooner than the window goes on',
      aim: { fates: ['reports'], shape: { windowMillis: 4000 } },
      lua: 'limits/fixed-window.move',
      body: 'return false',
    },
    {
      name: 'a window ends before the report does',
      aim: { fates: ['reports'] },
      lua: 'limits/fixed-window.ends',
      body: 'return self.start + self.window',
    },
  ],
  'a refund gives back what approvals have taken, and nothing else': [
    {
      name: 'a refund takes what is held',
      aim: { fates: ['refunds', 'hold'] },
      lua: 'limits/fixed-window.refund',
      body: `local held = self.held
    self.held = function() return 0 end
    local refunded = original(self, state, hits)
    self.held = nil
    return refunded`,
    },
    {
      name: 'a release gives back what was refunded',
      aim: { fates: ['refunds', 'release'] },
      lua: 'limits/own-ids.note_refund',
      body: '',
    },
  ],
  'approvals are held as in the model': [
    {
      name: 'a hold is dropped at the end of a window',
      aim: { fates: ['hold'] },
      lua: 'limits/fixed-window.roll',
      body: 'local ends = original(self, state, now_ms, length)\nself.used = ends and 0 or self.used\nreturn ends',
    },
    {
      name: 'a renewal holds again what has lapsed',
      aim: { fates: ['hold'] },
      lua: 'lib/holds.renew',
      body:
        'if millis and not holds.read(keys, state, id) then holds.add(keys, state, call, id, 1, millis) end\n' +
        'return original(keys, state, call, id, millis, hits, longest)',
    },
    {
      name: 'a release leaves the hold',
      aim: { fates: ['hold'] },
      lua: 'lib/holds.release',
      body: 'return nil',
    },
  ],
  'limits follow from rules and requests as in the model': [
    {
      name: 'a live key does not take the limits of newer rules',
      lua: 'lib/in-force.may_change',
      body: 'return false',
    },
    {
      name: 'a length that a request has set lasts for one window',
      aim: { fates: ['window override'], shape: { windowMillis: 20 } },
      lua: 'lib/in-force.take_next_window',
      body: "more.set(state, 'next_window', 0)",
    },
  ],
  'those who wait are served as by the model': [
    {
      name: 'a newcomer overtakes after a release',
      firstSeed: 9,
      lua: 'lib/given-back.note',
      body: 'state.released_at = call.now_ms',
    },
    {
      name: 'the end of a further window makes no room',
      aim: { shape: { further: TWO_LIMITS } },
      lua: 'limits/key-limits.roll_further',
      body: 'original(state, now_ms)\nreturn {}',
    },
  ],
  'a pause keeps everybody out as in the model, and no longer': [
    {
      name: 'the queue is served in a pause',
      aim: { fates: ['pause'] },
      lua: 'lib/pause.is_on',
      body: 'return false',
    },
    {
      name: 'the end of a pause makes no room',
      aim: { fates: ['pause'], shape: { windowMillis: 4000 } },
      lua: 'lib/pause.end_past',
      body: 'original(state, now_ms)\nstate.made_room = false',
    },
  ],
  'a key stays until it is idle, and nothing stays longer': [
    {
      name: 'a key becomes idle before the last of its windows ends',
      aim: { shape: { windowMillis: 5, further: TWO_LIMITS } },
      lua: 'lib/stored.idle_time',
      body: 'return window.idle_at(state.own.start, state.own.window)',
    },
    {
      name: 'a key expires before it is idle',
      lua: 'lib/instance.close',
      body: "original(keys, state, call)\nredis.call('PEXPIREAT', keys.state, call.now_ms + 1)",
    },
    {
      name: 'keys of a queue are given no expiry',
      lua: 'lib/instance.close',
      body: "original(keys, state, call)\nredis.call('PERSIST', keys.queue)",
    },
  ],
  'nobody is approved twice': [
    {
      name: 'a check that is sent again counts again',
      lua: 'lib/approvals.find',
      body: 'return {}',
    },
    {
      name: 'approvals of a window that ends are forgotten',
      aim: { fates: ['lose'], shape: { isPrompt: false, windowMillis: 200, leaseMillis: 600 } },
      lua: 'lib/generations.keep',
      body: "redis.call('UNLINK', requests)",
    },
    {
      name: 'a late settle puts back who was released',
      isRare: true,
      firstSeed: 153,
      aim: { fates: ['release', 'drop'] },
      lua: 'lib/past-requests.remember',
      body: '',
    },
  ],
  'a request counts once, however often its caller asks, and belongs to the newest check': [
    {
      name: 'a check with the id of an earlier one is a new request',
      aim: { fates: ['named'] },
      lua: 'lib/known-requests.answer',
      body: 'return nil',
    },
    {
      name: 'an approval that was released is given out again',
      aim: { fates: ['named', 'release'] },
      lua: 'lib/named-requests.write',
      body: `if is ~= named_requests.RELEASED then
      original(keys, state, call, is, requests)
    end`,
    },
    {
      name: 'a release leaves the place of a request that waits',
      aim: { fates: ['named', 'release'] },
      lua: 'lib/known-requests.withdraw',
      body: '',
    },
    {
      name: 'a check whose place was taken over gets the approval',
      aim: { fates: ['named'] },
      lua: 'queue/queue.take_over',
      body: '',
    },
    {
      name: 'a place that is taken over counts on both replicas',
      aim: { fates: ['named'] },
      lua: 'queue/queue.take_over',
      body: 'record.replica_id = call.replica\noriginal(keys, state, call, record, check)',
    },
    {
      name: 'a place that is taken over goes to the end of the queue',
      aim: { fates: ['named'] },
      lua: 'queue/queue.take_over',
      body: `original(keys, state, call, record, check)
    local ticket = entries.format_ticket(queue.next_ticket(keys, state, call))
    record.ticket = tonumber(ticket)
    redis.call('HSET', keys.waiting, record.request_id, ticket)
    fifo_list.append(keys, { entries.format(ticket, record, call.replica) })`,
    },
    {
      name: 'a check that was taken over gives back what belongs to a later one',
      aim: { fates: ['named'] },
      plant: () =>
        method(Withdrawals, 'add', (add) => {
          return function (this: Withdrawals, key, claims, holdMillis) {
            const ids = claims.map((claim) => parseClaim(claim).requestId);
            add.call(this, key, ids, holdMillis);
          };
        }),
    },
    {
      name: 'a settle does not tell that a place was taken over',
      aim: { fates: ['named', 'drop'] },
      lua: 'lib/named-requests.find_all',
      body: `local is_check = keys.of_named
    local found = original(keys, ids)
    for _, id in ipairs(ids) do
      if not is_check and found[id] and found[id].is == named_requests.WAITING then
        found[id] = nil
      end
    end
    return found`,
    },
    {
      name: 'a check that was taken over waits on',
      firstSeed: 48,
      aim: { fates: ['named'], shape: { isPrompt: true } },
      plant: () =>
        method(LocalQueue, 'onWake', (onWake) => {
          return function (this: LocalQueue, wake) {
            onWake.call(this, { ...wake, ended: [] });
          };
        }),
    },
    {
      name: 'a place is served later than it was ended',
      firstSeed: 30,
      aim: { fates: ['named'] },
      lua: 'lib/known-requests.end_wait',
      body: '',
    },
    {
      name: 'the records of requests do not expire',
      aim: { fates: ['named'] },
      lua: 'lib/named-requests.expire',
      body: '',
    },
  ],
  'no approval is kept from others': [
    {
      name: 'an approval that crosses a leaving client is taken for a place in the queue',
      lua: 'lib/approvals.release',
      body: 'return is_unused and 0 or original(keys, state, call, ids, is_unused)',
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
  ],
  'a loss changes no order': [
    {
      name: 'a lost key does not wait for those who come back',
      isRare: true,
      firstSeed: 29,
      aim: { fates: ['lose memory'], shape: { isPrompt: true } },
      lua: 'lib/recovery.begin_after_loss',
      body: '',
    },
    {
      name: 'who is put back stands behind those who came later',
      isRare: true,
      firstSeed: 33,
      aim: { fates: ['lose memory', 'rules'] },
      lua: 'queue/fifo-list.sort',
      body: '',
    },
    {
      name: 'a torn queue does not wait for those who come back',
      firstSeed: 79,
      aim: { fates: ['tear queue'], shape: { isPrompt: true } },
      lua: 'lib/recovery.begin_after_loss_of_queue',
      body: '',
    },
  ],
  'what is put back is what was asked for': [
    {
      name: 'a waiter that is put back needs one hit',
      firstSeed: 83,
      aim: { fates: ['hits'] },
      lua: 'queue/queue.rejoin',
      body: 'for _, waiter in ipairs(waiters) do waiter.hits = 1 end\noriginal(keys, state, call, waiters)',
    },
    {
      name: 'a waiter that is put back is not held',
      aim: { fates: ['hold', 'lose memory'] },
      lua: 'queue/queue.rejoin',
      body: 'for _, waiter in ipairs(waiters) do waiter.hold = nil end\noriginal(keys, state, call, waiters)',
    },
  ],
  'a key recovers after a loss only, and before leases are renewed': [
    {
      name: 'a dead replica is taken for a Redis that was down',
      isRare: true,
      firstSeed: 360,
      aim: {
        fates: ['waits at one', 'freeze'],
        shape: { isPrompt: true, windowMillis: 1000, leaseMillis: 600 },
      },
      lua: 'lib/history.was_up_since',
      body: 'return false',
    },
    {
      name: 'every waiter is taken for one from before a loss',
      aim: { shape: { isPrompt: true } },
      lua: 'lib/recovery.is_older_than_key',
      body: 'return true',
    },
    {
      name: 'a lease is renewed before the recovery for other replicas that were cut off',
      isRare: true,
      firstSeed: 270,
      aim: { fates: ['away'] },
      lua: 'lib/recovery.has_current_lease',
      body: 'return true',
    },
  ],
  'a place is kept, and only by the living': [
    {
      name: 'the places of the dead are taken for those of the living',
      firstSeed: 36,
      aim: { fates: ['freeze', 'kill'] },
      lua: 'queue/replicas.is_alive',
      body: 'return true',
    },
    {
      name: 'a lease is not renewed',
      aim: { shape: { isPrompt: true, windowMillis: 4000 } },
      plant: () => getter(Lease, 'renewalDueAt', Infinity),
    },
    {
      name: 'a lease is taken for renewed where it is not',
      isRare: true,
      firstSeed: 1051,
      plant: () => method(QueueLease, 'leaseDoubted', () => () => undefined),
    },
  ],
  'nothing lasts longer after the clock has gone back': [
    {
      name: 'a hold lasts longer after the clock has gone back',
      aim: { fates: ['clock back', 'hold'] },
      lua: 'lib/holds.shorten',
      body: '',
    },
    {
      name: 'a pause lasts longer after the clock has gone back',
      aim: { fates: ['clock back', 'pause'] },
      lua: 'lib/clock-step.begin_by_now',
      body:
        'local paused_until = state.paused_until\nlocal goes_back = original(state, now_ms)\n' +
        'state.paused_until = paused_until\nreturn goes_back',
    },
    {
      name: 'a report lasts longer after the clock has gone back',
      firstSeed: 15,
      aim: { fates: ['clock back', 'reports'] },
      lua: 'limits/fixed-window.begin_by',
      body: 'return original(self, now_ms, 0)',
    },
    {
      name: 'a lease lasts longer after the clock has gone back',
      aim: { fates: ['clock back'] },
      lua: 'queue/replicas.cut_leases',
      body: '',
    },
  ],
  'those who wait are told in time': [
    {
      name: 'those who wait are not told of a lapse that comes sooner',
      isRare: true,
      firstSeed: 643,
      aim: { fates: ['hold'], shape: { isPrompt: true, windowMillis: 4000 } },
      lua: 'lib/news.are_due',
      body: 'return state.has_news or state.serves_more or (state.granted and #state.granted > 0)',
    },
    {
      name: 'a window leader that dies before it wakes anybody is awaited',
      firstSeed: 69,
      aim: { fates: ['kill'], shape: { isPrompt: true } },
      plant: () =>
        method(WindowTiming, 'dueAt', (dueAt) => {
          return function (this: WindowTiming, isLeading) {
            return isLeading ? dueAt.call(this, true) : Infinity;
          };
        }),
    },
    {
      name: 'nobody serves those who wait for the end of a day',
      firstSeed: 18,
      aim: { shape: { isPrompt: true, algorithm: DAYS } },
      plant: () =>
        method(WindowTiming, 'dueAt', (dueAt) => {
          return function (this: WindowTiming, isLeading) {
            const at = dueAt.call(this, isLeading);
            const isSpread = at - this.roomAt > LONGEST_GRACE_MILLIS;
            return isSpread ? Infinity : at;
          };
        }),
    },
    {
      name: 'the number of a reply tells nothing, so that nobody asks for a last wake that went missing',
      isRare: true,
      firstSeed: 651,
      aim: { fates: ['drop'], shape: { isPrompt: true } },
      plant: withPlacesUntold(() => method(WakeNumbers, 'replied', () => () => 'news')),
    },
  ],
  'new rules reach those who wait': [
    {
      name: 'those who wait for a limit that was removed wait on',
      aim: { fates: ['limits'], shape: { isPrompt: true, further: TWO_LIMITS } },
      lua: 'lib/in-force.take_for_waiters',
      body: '',
    },
    {
      name: 'a replica does not tell Redis of new rules while its requests wait',
      firstSeed: 689,
      aim: {
        fates: ['limits'],
        shape: { isPrompt: true, windowMillis: 4000, further: TWO_LIMITS },
      },
      plant: () => method(WaitingRoom, 'limitsChanged', () => () => undefined),
    },
  ],
  'a wait is as long as its limit': [
    {
      name: 'a wait that is over goes on',
      isRare: true,
      aim: { fates: ['limited waits'], shape: { isPrompt: true } },
      plant: () => method(Waiter, 'onceExpired', () => () => undefined),
    },
    {
      name: 'a wait is over too early',
      firstSeed: 24,
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
  ],
  'who is told so is approved, and nothing is left to be done': [
    {
      name: 'a replica that stood still takes a hold that has lapsed for one that lasts',
      firstSeed: 93,
      aim: { fates: ['hold', 'freeze'] },
      plant: () =>
        method(LocalQueue, 'onWake', (onWake) => {
          return function (this: LocalQueue, wake) {
            onWake.call(this, { ...wake, at: Number.MAX_SAFE_INTEGER });
          };
        }),
    },
    {
      name: 'a window leader stays in office when nobody waits any more',
      plant: () => method(WindowLeader, 'resign', () => () => Promise.resolve()),
    },
  ],
};
