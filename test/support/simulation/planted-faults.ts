import type { Redis } from 'ioredis';

import type { Algorithm } from '../../../src/limiter/kinds/kinds.js';
import { parseClaim } from '../../../src/limiter/request.js';
import { Waiter } from '../../../src/limiter/waiter.js';
import { Confirmations } from '../../../src/redis/waiting/confirmations.js';
import { Lease } from '../../../src/redis/waiting/leases.js';
import { LocalQueue } from '../../../src/redis/waiting/local-queue.js';
import { LocalWaiters } from '../../../src/redis/waiting/local-waiters.js';
import { QueueView } from '../../../src/redis/waiting/queue-view.js';
import { LocalQueues } from '../../../src/redis/waiting/local-queues.js';
import { WindowLeader } from '../../../src/redis/waiting/window-leader.js';
import { Withdrawals } from '../../../src/redis/waiting/withdrawals.js';
import { say } from '../chaos/expect-no-violations.js';
import type { FurtherLimit } from '../further-limits.js';
import { calendarNamed } from './calendars.js';
import { type CampaignReport, runCampaign } from './campaign.js';
import { faultyScripts } from './lua-fault.js';
import type { Aim, Scripts } from './schedule.js';
import type { Fate } from './scheduler.js';
import { simulatedScripts } from './stored-key.js';
import { Violation } from './snapshot.js';

interface ClassOf<Instance> {
  readonly prototype: Instance;
}

/** Changes a property of a class. Returns a function that undoes it. */
function change<Instance extends object>(
  { prototype }: ClassOf<Instance>,
  name: keyof Instance,
  other: (original: PropertyDescriptor) => PropertyDescriptor,
): () => void {
  const original = Object.getOwnPropertyDescriptor(prototype, name)!;
  Object.defineProperty(prototype, name, { configurable: true, ...other(original) });
  return () => Object.defineProperty(prototype, name, original);
}

/** Replaces a method of a class. Returns a function that undoes it. */
function method<Instance extends object, Name extends keyof Instance>(
  of: ClassOf<Instance>,
  name: Name,
  other: (original: Instance[Name]) => Instance[Name],
): () => void {
  return change(of, name, ({ value }) => ({ value: other(value as Instance[Name]) }));
}

/** The same for a property that is computed. */
function getter<Instance extends object, Name extends keyof Instance>(
  of: ClassOf<Instance>,
  name: Name,
  value: Instance[Name],
): () => void {
  return change(of, name, () => ({ get: () => value }));
}

/** A fault that this project had, or could have had. */
export interface PlantedFault {
  readonly name: string;
  /** Puts the fault into the code of this process. Returns a function that takes it out again. */
  readonly plant?: () => () => void;
  /** A function of a fragment, `<path in lua, without .lua>.<name>`, that has another body: `faultyScripts`. */
  readonly lua?: string;
  readonly body?: string;
  /** What it takes to find it, where many things have to come together. */
  readonly aim?: Aim;
  /** Shortly before a seed that shows it, if the search from 1 on would take many schedules. */
  readonly firstSeed?: number;
}

type Failure = NonNullable<CampaignReport['failure']>;

const MOST_SCHEDULES = 4000;

/**
 * Finds a fault from its first seed on, and runs `then` while the fault is planted.
 * @throws Error if the simulation does not find it
 */
export async function findFault(
  redis: Redis,
  { name, plant, lua, body = '', aim, firstSeed = 1 }: PlantedFault,
  then: (failure: Failure, scripts: Scripts) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const texts = lua === undefined ? simulatedScripts() : faultyScripts(lua, body);
  const takeOut = plant?.();
  try {
    const goesOn = (schedules: number): boolean => schedules < MOST_SCHEDULES;
    const { failure } = await runCampaign(redis, texts, firstSeed, goesOn, aim);
    expect(failure?.outcome.violation).toBeInstanceOf(Violation);
    const { seed, outcome } = failure!;
    // A fault does something wrong, and is no script that can't run.
    expect(outcome.violation).not.toMatchObject({ rule: 'no script fails' });
    say(`simulation: ${name}: found by seed ${seed}: ${outcome.violation!.message}`);
    await then(failure!, texts);
  } finally {
    takeOut?.();
  }
}

const TWO_LIMITS: readonly FurtherLimit[] = [
  { name: 'a', windowMillis: 200, maximum: 3, counts: 'hits', keepsReleased: false },
  { name: 'b', windowMillis: 1000, maximum: 2, counts: 'requests', keepsReleased: true },
];
const SLIDING: Algorithm = { name: 'sliding_window', steps: 3 };
/** Days of 460 to 500 ms, and of 23 to 25 ms. */
const DAYS: Algorithm = byCalendar('Short/20/0');
const SHORT_DAYS: Algorithm = byCalendar('Short/1/0');
const KEPT: Aim = { fates: ['named', 'kept', 'leave'] };
/** In which one group has less than the others. */
const OF_GROUPS: readonly FurtherLimit[] = [
  {
    ...{ name: 'g', windowMillis: 500, maximum: 2, counts: 'hits', keepsReleased: false },
    perGroup: { maxima: new Map([['x', 1]]) },
  },
];
/** Which seldom stops a group. */
const LAX_GROUPS = OF_GROUPS.map((limit) => ({
  ...limit,
  maximum: 9,
  perGroup: { maxima: new Map() },
}));
/** The key has room for more than a group. */
const GROUPS: Aim = { fates: ['lists'], shape: { maxRequests: 3, further: OF_GROUPS } };

const FEW_GROUPS: Aim = { ...GROUPS, shape: { ...GROUPS.shape, mostGroups: 2 } };

function groupsWith(...fates: Fate[]): Aim {
  return { ...GROUPS, fates: ['lists', ...fates] };
}

function byCalendar(timeZone: string): Algorithm {
  return { name: 'fixed_window', calendar: calendarNamed({ unit: 'day', timeZone }) };
}

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
    method(LocalWaiters, 'get', (get) => {
      return function (this: LocalWaiters, claim) {
        const found = get.call(this, claim);
        const list = found?.waiter.request.list;
        const isUrgent = list?.kind === 'lane' && list.headStartMillis > 0;
        return isLost && isUrgent ? undefined : found;
      };
    }),
  ];
  return () => {
    for (const each of undo) each();
  };
}

/** Faults that show at once that the simulation judges, one of a script and some of the waiting code. */
export const QUICK_FAULTS: readonly PlantedFault[] = [
  {
    name: 'an approval that crosses a leaving client is taken for a place in the queue',
    lua: 'lib/approvals.release',
    body: 'return is_unused and 0 or original(keys, state, call, ids, is_unused, found)',
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
    name: 'a kept place ends with its connection',
    aim: KEPT,
    plant: keptFor(() => 0),
  },
];

/**
 * Faults of what only the simulation judges, one for each of its checks, by what they break. What several replicas, lost
 * messages, lost memory and clocks have no part in, both limiters in lockstep judge.
 */
export const PLANTED_FAULTS: Readonly<Record<string, readonly PlantedFault[]>> = {
  'scripts of several replicas do as the model does': [
    {
      name: 'the confirmation of an approval that has lapsed is taken',
      firstSeed: 69,
      aim: { fates: ['named', 'kept', 'freeze'] },
      lua: 'confirm.confirm_one',
      body: `return not request or original(keys, state, call, request, owner)`,
    },
    {
      name: 'a place that is taken over counts on both replicas',
      aim: { fates: ['named'] },
      lua: 'queue/queue.take_over',
      body: 'waiter.replica_id = call.replica\noriginal(keys, state, call, waiter, check)',
    },
  ],
  'a place stays without its connection for as long as it is kept': [
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
      aim: { ...KEPT, shape: { isPrompt: true } },
      plant: keptFor((keepMillis) => 10 * keepMillis),
    },
  ],
  'who is told so is approved': [
    {
      name: 'a caller is told of an approval before Redis has confirmed it',
      firstSeed: 15,
      aim: KEPT,
      plant: () =>
        method(Confirmations, 'confirm', () => ({ onAnswer }) => {
          onAnswer(true, 0, undefined);
        }),
    },
  ],
  'lists and their heads stay as they are, whatever is lost': [
    {
      name: 'waiters come back without their lists to a key that was lost',
      aim: { fates: ['lists', 'tear queue', 'lose memory'] },
      lua: 'queue/queue.rejoin',
      body: `for _, waiter in ipairs(waiters) do
      waiter.list = nil
    end
    original(keys, state, call, waiters)`,
    },
    {
      name: 'heads that were removed stay away',
      firstSeed: 107,
      aim: { fates: ['lists', 'tear queue', 'lose memory'] },
      lua: 'queue/lists.repair',
      // Without a state that names the lists, scripts would fail.
      body: `if not state.lists then
      original(keys, state)
    end`,
    },
  ],
  'each group has its limits to itself, and stops nobody else': [
    {
      name: 'all groups count as one',
      aim: GROUPS,
      lua: 'limits/key-limits.group_of',
      body: "return list and original(state, 'group:')",
    },
    {
      name: 'what a group takes is not counted in its limits',
      aim: GROUPS,
      lua: 'limits/key-limits.take',
      body: `for _, limit in ipairs(key_limits.counting(state, list)) do
      if not limit.group then
        limit:take(keys, state, call, id, hits, is_held)
      end
    end`,
    },
    {
      name: 'maxima of single groups are ignored',
      aim: GROUPS,
      lua: 'limits/group-limits.begin_limit',
      body: 'local limit = original(self, group, declared)\nlimit.max = declared.max\nreturn limit',
    },
    {
      name: 'a group is forgotten while it counts',
      aim: GROUPS,
      lua: 'limits/group-limits.is_idle',
      body: 'return group.held_ids == 0 and group.paused_until == 0 and not group.tag',
    },
    {
      name: 'what a group held is not given back',
      aim: groupsWith('hold', 'release'),
      lua: 'limits/key-limits.hold',
      body: `for _, limit in ipairs(key_limits.counting(state, list)) do
      if ids >= 0 or not limit.group then
        limit:hold(hits, ids)
      end
    end`,
    },
    {
      name: 'a group that is stopped stops all',
      aim: GROUPS,
      lua: 'queue/heads.stops_of',
      body: 'return original(state, left, entry) and turn_walk.all',
    },
    {
      name: 'a release does not bring a group back',
      aim: groupsWith('release'),
      lua: 'limits/group-limits.take_changed',
      body: 'return {}',
    },
    {
      name: 'the end of its window does not bring a group back',
      aim: GROUPS,
      lua: 'queue/lists.heads_due',
      body: 'return {}',
    },
    {
      name: 'a higher maximum does not bring a group back',
      aim: groupsWith('maxima'),
      lua: 'queue/lists.bring_all_back',
      body: '',
    },
    {
      name: 'a pause of a group is ignored',
      aim: groupsWith('paused groups'),
      lua: 'limits/key-limits.is_group_paused',
      body: 'return false',
    },
    {
      name: 'nobody is called when a group may come back',
      aim: { ...GROUPS, shape: { ...GROUPS.shape, isPrompt: true, windowMillis: 4000 } },
      lua: 'queue/lists.first_stopped_until',
      body: 'return nil',
    },
    {
      name: 'what is stored of groups is given no expiry',
      aim: GROUPS,
      lua: 'limits/group-limits.expire',
      body: '',
    },
  ],
  'a key has as many groups as it may have': [
    {
      name: 'a key has any number of groups',
      aim: FEW_GROUPS,
      lua: 'limits/group-limits.is_full_for',
      body: 'return false',
    },
    {
      name: 'groups that are idle take the room of others',
      aim: FEW_GROUPS,
      lua: 'limits/group-limits.forget_idle',
      body: 'return false',
    },
  ],
  'rules that are loaded again become those of each group': [
    {
      name: 'a group goes on by rules that are over',
      aim: groupsWith('maxima'),
      lua: 'limits/group-limits.take_rules',
      body: '',
    },
    {
      name: 'a group begins again with each change of rules',
      aim: groupsWith('maxima'),
      lua: 'limits/group-limits.take_rules',
      body: `if group.limits_text ~= self.state.groups_text then
      group.limits, group.limits_text = begin_limits(self, group, self.state.of_groups), self.state.groups_text
    end`,
    },
    {
      name: 'what is held already counts in no new limit of its group',
      aim: groupsWith('hold', 'maxima'),
      lua: 'limits/group-limits.count_held',
      body: '',
    },
    {
      name: 'what counted before a key had no limits of groups counts again',
      aim: groupsWith('maxima'),
      lua: 'limits/key-limits.take_further',
      body: `local number = state.groups_number
    original(keys, state, rules, call)
    state.groups_number, state.groups_are_new = number, false`,
    },
  ],
  'groups share by weight, and their lanes by head starts': [
    {
      name: 'a group comes back with a tag of 0',
      aim: GROUPS,
      lua: 'queue/turn-walk.bring_back',
      body: `original(self, state, now_ms)
    for _, list in ipairs(self.open) do
      list.key = 0
    end`,
    },
    {
      name: 'a group keeps the tag that it had when it was stopped',
      aim: GROUPS,
      lua: 'queue/turn-walk.bring_back',
      body: `local virtual_time = self.virtual_time
    self.virtual_time = 0
    original(self, state, now_ms)
    self.virtual_time = virtual_time`,
    },
    {
      name: 'groups with limits have no weights',
      aim: { fates: ['lists'], shape: { maxRequests: 1, windowMillis: 20, further: LAX_GROUPS } },
      lua: 'queue/lists.share_of',
      body: 'return waiter.hits',
    },
    {
      name: 'lanes inside groups have no head starts',
      aim: { fates: ['lists'] },
      lua: 'queue/entries.start_of',
      body: "return waiter.ticket .. ':' .. waiter.requestId",
    },
  ],
  'callers agree on the days of calendars': [
    {
      name: 'a call goes by days that are over',
      aim: { shape: { algorithm: SHORT_DAYS } },
      lua: 'lib/in-force.require_current_calendars',
      body: '',
    },
    {
      name: 'a lost day lasts as long as the longest if the rules have another limit',
      aim: { fates: ['lose memory', 'algorithms'], shape: { algorithm: DAYS } },
      lua: 'limits/calendar-window.restore_full',
      body: 'self.used = millis_left > 0 and self.max or 0',
    },
  ],
  'a key stays until it is idle, and nothing stays longer': [
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
  ],
  'a request belongs to the newest of its checks': [
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
  ],
  'a loss changes no order, and what is put back is what was asked for': [
    {
      name: 'a lost key does not wait for those who come back',
      firstSeed: 29,
      aim: { fates: ['lose memory'], shape: { isPrompt: true } },
      lua: 'lib/recovery.begin_after_loss',
      body: '',
    },
    {
      name: 'a torn queue does not wait for those who come back',
      firstSeed: 79,
      aim: { fates: ['tear queue'], shape: { isPrompt: true } },
      lua: 'lib/recovery.begin_after_loss_of_queue',
      body: '',
    },
    {
      name: 'a waiter that is put back is not held',
      aim: { fates: ['hold', 'lose memory'] },
      lua: 'queue/queue.rejoin',
      body: 'for _, waiter in ipairs(waiters) do waiter.holdMillis = nil end\noriginal(keys, state, call, waiters)',
    },
  ],
  'a key recovers after a loss only, and before leases are renewed': [
    {
      name: 'every waiter is taken for one from before a loss',
      aim: { shape: { isPrompt: true } },
      lua: 'lib/recovery.is_older_than_key',
      body: 'return true',
    },
    {
      name: 'a lease is renewed before the recovery for other replicas that were cut off',
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
  ],
  'nothing lasts longer after the clock has gone back, and nothing that counts is forgotten': [
    {
      name: 'what counts is forgotten if the clock goes back by a part of the window',
      firstSeed: 9,
      aim: { fates: ['clock back'], shape: { algorithm: SLIDING, windowMillis: 500 } },
      lua: 'limits/sliding-window.begin_by',
      body: 'if self.step_start > now_ms then self:clear() end\nreturn original(self, now_ms)',
    },
    {
      name: 'a pause lasts longer after the clock has gone back',
      aim: { fates: ['clock back', 'pause'] },
      lua: 'lib/recovery.begin_by_now',
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
      name: 'a wake is lost for an interactive waiter before a backlog of others',
      firstSeed: 30,
      aim: { fates: ['lists'], shape: { isPrompt: true } },
      plant: loseWakesOfUrgent,
    },
    {
      name: 'those who wait are not told of a lapse that comes sooner',
      firstSeed: 643,
      aim: { fates: ['hold'], shape: { isPrompt: true, windowMillis: 4000 } },
      lua: 'lib/instance.is_wake_due',
      body: 'return state.must_wake or state.serves_more or (state.granted and #state.granted > 0)',
    },
    {
      name: 'a window leader that dies before it wakes anybody is awaited',
      firstSeed: 69,
      aim: { fates: ['kill'], shape: { isPrompt: true } },
      plant: () =>
        method(QueueView, 'dueAt', (dueAt) => {
          return function (this: QueueView, isLeading) {
            return isLeading ? dueAt.call(this, true) : Infinity;
          };
        }),
    },
    {
      name: 'a replica does not tell Redis of new rules while its requests wait',
      firstSeed: 689,
      aim: {
        fates: ['limits'],
        shape: { isPrompt: true, windowMillis: 4000, further: TWO_LIMITS },
      },
      plant: () => method(LocalQueues, 'limitsChanged', () => () => undefined),
    },
  ],
  'a wait is as long as its limit': [
    {
      name: 'a wait that is over goes on',
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
  'nothing is left to be done': [
    {
      name: 'a window leader stays in office when nobody waits any more',
      plant: () => method(WindowLeader, 'resign', () => () => Promise.resolve()),
    },
  ],
};
