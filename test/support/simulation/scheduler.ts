import { LONGEST_BACKOFF_MILLIS } from '../../../src/redis/shared/losses.js';
import type { Random } from '../chaos/random.js';
import type { FurtherLimit } from '../further-limits.js';
import { windowEnd } from '../stored-state.js';
import type { SimulatedClient } from './client.js';
import { DrawnLists, MOVES_OF_WAITERS } from './drawn-lists.js';
import { isQuiet, millisToNext } from './punctuality.js';
import type { SimulatedReplica } from './replica.js';
import {
  drawAlgorithm,
  drawFurther,
  drawLimit,
  drawLimitsOfGroups,
  drawMaxima,
  formatAlgorithm,
  formatFurther,
  GROUPS,
  LIMIT_NAMES,
  REPLICA_NAMES,
  WINDOWS,
  withLimitsOfGroups,
} from './shape.js';
import { LOSSES, LOSSES_OF_GROUPS, LOSSES_OF_HEADS, QUEUE_PARTS, type World } from './world.js';

/** What makes kept places outlive their connections, or their replicas. Worlds with kept places have more of it. */
const ENDS_OF_CONNECTIONS = ['leave', 'kill', 'freeze', 'stop'] as const;

/** Draws for how long places are kept, and for how long their checks wait for answers. */
class DrawnKeeps {
  constructor(
    private readonly random: Random,
    private readonly world: World,
  ) {}

  /** What a check that can wait says, whose caller has chosen the id. @param before what an earlier one has said */
  words(before?: Pick<SimulatedClient, 'keepMillis'>): string[] {
    const { random } = this;
    if (!random.chance(before && before.keepMillis === undefined ? 0.1 : 0.85)) return [];
    const millis = before?.keepMillis ?? this.#millis();
    const words = [`keep=${random.chance(0.8) ? millis : this.#millis()}`];
    if (random.chance(0.3)) words.push(`answer=${random.whole(0, 2) * this.#millis()}`);
    return words;
  }

  /** From less than a timer's delay to more than a window or a lease. */
  #millis(): number {
    const { random, world } = this;
    const { leaseMillis } = world.shape;
    return random.pick([
      random.whole(1, 20),
      random.whole(20, 400),
      random.pick(world.rules.windows),
      random.whole(leaseMillis, 2 * leaseMillis),
    ]);
  }
}

/** What may go wrong, or make things less simple. Each schedule has some of them. */
const SLOW_FATES = ['lose', 'refuse', 'reorder', 'lose memory in part'] as const;
const FATES = [
  'leave',
  'release',
  'amend',
  'no wait',
  'waits at one',
  'hits',
  'limited waits',
  'override',
  'rules',
  'windows',
  'drop',
  'double',
  'reconnect',
  'freeze',
  'kill',
  'stop',
  'away',
  'tear queue',
  'lose memory',
  'slow ticks',
  'hold',
  'limits',
  'pause',
  'window override',
] as const;
/** Drawn apart. */
const CLOCK_BACK = 'clock back';
const ALGORITHMS = 'algorithms';
const REPORTS = 'reports';
const REFUNDS = 'refunds';
/** Callers choose ids, and ask again with them. */
const NAMED = 'named';
/** Their places outlive their connections. */
const KEPT = 'kept';
const KEPT_CHANCE = 0.5;
/** Checks name lanes or groups. */
const LISTS = 'lists';
const LISTS_CHANCE = 0.25;
/** Where each group has limits to itself, checks name groups. Rules give these other maxima, or other limits. */
const MAXIMA = 'maxima';
/** And groups are paused. */
const PAUSED_GROUPS = 'paused groups';
const OF_GROUPS = [MAXIMA, PAUSED_GROUPS, 'hold', 'release', 'hits'] as const;
const OF_GROUPS_CHANCE = 0.5;
export type Fate =
  | (typeof SLOW_FATES)[number]
  | (typeof FATES)[number]
  | typeof CLOCK_BACK
  | typeof ALGORITHMS
  | typeof REPORTS
  | typeof REFUNDS
  | typeof NAMED
  | typeof KEPT
  | typeof LISTS
  | typeof MAXIMA
  | typeof PAUSED_GROUPS;

/** Few worlds have it. In these, more is set for some time than in others. */
const CLOCK_BACK_CHANCE = 0.1;
const TIMED_FATES = ['pause', 'hold', 'kill', 'freeze'] as const;
const TIMED_FATE_CHANCE = 0.5;

/** Of each fate, in some worlds and in others: one that needs few is hidden by many. */
const FATE_CHANCES = [0.2, 0.4] as const;
const MOST_CLIENTS = 24;
/** Those that ask again included. */
const MOST_CHECKS = 48;

type Choice = readonly [weight: number, step: string];

/** Decides, from its seed, what happens next in a world. */
export class Scheduler {
  readonly #fates = new Set<Fate>();
  /** Of the steps of Redis's clock. */
  readonly #clockRandom: Random;
  readonly #algorithmRandom: Random;
  readonly #reportRandom: Random;
  readonly #refundRandom: Random;
  readonly #namedRandom: Random;
  readonly #keptRandom: Random;
  readonly #keeps: DrawnKeeps;
  readonly #listsRandom: Random;
  readonly #lists: DrawnLists;
  readonly #groupsRandom: Random;
  /** Whether each group has limits to itself, by the rules that replicas begin with. */
  readonly #haveLimitsOfGroups: boolean;
  #clients = 0;
  #lastRules: string | undefined;

  constructor(
    private readonly random: Random,
    private readonly world: World,
    given: readonly Fate[] = [],
  ) {
    for (const fate of given) this.#fates.add(fate);
    const possible = world.shape.isPrompt ? FATES : [...FATES, ...SLOW_FATES];
    const chance = random.pick(FATE_CHANCES);
    this.#clockRandom = random.fork('clock');
    this.#algorithmRandom = random.fork('algorithms');
    this.#reportRandom = random.fork('reports');
    this.#refundRandom = random.fork('refunds');
    this.#namedRandom = random.fork('named');
    this.#keptRandom = random.fork('kept');
    this.#keeps = new DrawnKeeps(this.#keptRandom, world);
    this.#listsRandom = random.fork('lists');
    this.#groupsRandom = random.fork('groups');
    this.#haveLimitsOfGroups = world.shape.further.some(({ perGroup }) => perGroup);
    this.#lists = new DrawnLists(this.#listsRandom.fork('drawn'), this.#haveLimitsOfGroups);
    for (const fate of possible) if (random.chance(chance)) this.#fates.add(fate);
    if (this.#clockRandom.chance(CLOCK_BACK_CHANCE)) this.#fates.add(CLOCK_BACK);
    if (this.#algorithmRandom.chance(chance)) this.#fates.add(ALGORITHMS);
    if (this.#reportRandom.chance(chance)) this.#fates.add(REPORTS);
    if (this.#refundRandom.chance(chance)) this.#fates.add(REFUNDS);
    if (this.#namedRandom.chance(chance)) this.#fates.add(NAMED);
    if (this.#has(NAMED) && this.#keptRandom.chance(KEPT_CHANCE)) this.#fates.add(KEPT);
    if (this.#has(KEPT)) {
      for (const fate of ENDS_OF_CONNECTIONS)
        if (this.#keptRandom.chance(TIMED_FATE_CHANCE)) this.#fates.add(fate);
    }
    if (this.#haveLimitsOfGroups) {
      this.#fates.add(LISTS);
      for (const fate of OF_GROUPS)
        if (this.#groupsRandom.chance(OF_GROUPS_CHANCE)) this.#fates.add(fate);
    }
    if (this.#listsRandom.chance(LISTS_CHANCE)) this.#fates.add(LISTS);
    if (this.#has(LISTS)) {
      for (const fate of MOVES_OF_WAITERS)
        if (this.#listsRandom.chance(TIMED_FATE_CHANCE)) this.#fates.add(fate);
    }
    if (!this.#has(CLOCK_BACK)) return;
    for (const fate of TIMED_FATES)
      if (this.#clockRandom.chance(TIMED_FATE_CHANCE)) this.#fates.add(fate);
  }

  next(): string {
    const choices = [...this.#ofWorld(), ...this.world.replicas.flatMap((each) => this.#of(each))];
    let drawn = this.random.next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, step] of choices) {
      drawn -= weight;
      if (drawn < 0) return step;
    }
    return choices.at(-1)![1];
  }

  #has(fate: Fate): boolean {
    return this.#fates.has(fate);
  }

  get #changesRules(): boolean {
    const fates: readonly Fate[] = ['rules', 'windows', 'limits', ALGORITHMS, MAXIMA];
    return fates.some((fate) => this.#has(fate));
  }

  #ofWorld(): Choice[] {
    const { world, random } = this;
    const choices: Choice[] = [];
    if (!world.shape.isPrompt || isQuiet(world)) choices.push([4, `pass ${this.#someTime()}`]);
    if (this.#has('lose memory')) choices.push([0.4, 'forget everything']);
    if (this.#has('tear queue')) choices.push([0.4, `forget ${random.pick(QUEUE_PARTS)}`]);
    if (this.#has('lose memory in part')) {
      choices.push([0.4, `forget ${random.pick(Object.keys(LOSSES))}`]);
    }
    if (this.#has(LISTS) && this.#has('tear queue')) {
      choices.push([0.3, `forget ${this.#listsRandom.pick(Object.keys(LOSSES_OF_HEADS))}`]);
    }
    if (this.#haveLimitsOfGroups && this.#has('lose memory in part')) {
      const what = this.#groupsRandom.pick(Object.keys(LOSSES_OF_GROUPS));
      choices.push([0.3, `forget ${what}`]);
    }
    if (this.#changesRules) choices.push([0.5, `reload ${this.#rules()}`]);
    if (this.#has(CLOCK_BACK)) choices.push([0.5, `clock-back ${this.#stepBack()}`]);
    if (this.#has('away'))
      choices.push(world.isRedisAway ? [this.#backWeight(), 'back'] : [this.#awayWeight(), 'away']);
    return choices;
  }

  /** Where nothing else is late, Redis often goes away again while a key is held for replicas that are not back. */
  #awayWeight(): number {
    const { shape, replicas } = this.world;
    const isAwaited = replicas.some(({ connection }) => connection.isBroken);
    return shape.isPrompt && this.#isRecovering && isAwaited ? 4 : 0.4;
  }

  get #isRecovering(): boolean {
    const { stored, redisNow } = this.world;
    return (stored.last.state?.recoveryUntil ?? 0) > redisNow;
  }

  /** Where nothing else is late, Redis is mostly away until leases have run out. */
  #backWeight(): number {
    const { shape, awayAt, now, timesAwayAgain } = this.world;
    if (!shape.isPrompt) return 1.5;
    if (timesAwayAgain > 0) return this.#isRecovering ? 0.05 : 5;
    if (now - awayAt < shape.leaseMillis) return 0.05;
    return this.#untilWindowEnds < LONGEST_BACKOFF_MILLIS ? 5 : 0.5;
  }

  /** As Redis has it; infinite where no window goes on. */
  get #untilWindowEnds(): number {
    const { redisNow, stored } = this.world;
    const { state } = stored.last;
    const millis = state ? windowEnd(state) - redisNow : 0;
    return millis > 0 ? millis : Infinity;
  }

  /** As Redis has it; infinite where nothing is held. */
  get #untilLapse(): number {
    const { redisNow, stored } = this.world;
    const lapses = [...stored.last.holds.values()].map(({ lapsesAt }) => lapsesAt - redisNow);
    return Math.min(...lapses.filter((millis) => millis > 0));
  }

  /** Mostly until the next timer is due. */
  #someTime(): number {
    const { world, random } = this;
    const dueAt = Math.min(
      ...world.replicas.filter(({ isRunning }) => isRunning).map(({ clock }) => clock.nextDueAt),
      ...world.replicas.map(({ connection }) => connection.nextLimitAt),
    );
    const untilDue = Math.max(1, dueAt - world.now);
    if (this.#untilLapse < Infinity && random.chance(0.2)) {
      return world.shape.isPrompt
        ? Math.min(millisToNext(world), this.#untilLapse)
        : this.#untilLapse;
    }
    const { isPrompt, leaseMillis } = world.shape;
    const others = isPrompt ? [leaseMillis, 2 * leaseMillis] : [];
    const { windows, furtherWindows } = world.rules;
    const reports = world.longestReport > 0 ? [world.longestReport] : [];
    const keeps = world.longestKeep > 0 ? [world.longestKeep] : [];
    const some = random.whole(
      1,
      random.pick([5, 50, ...windows, ...furtherWindows, ...others, ...reports, ...keeps]),
    );
    const isTimerNext = untilDue < Infinity && random.chance(0.6);
    if (isPrompt) return Math.min(millisToNext(world), isTimerNext ? untilDue : some);
    if (random.chance(0.03)) return random.whole(leaseMillis, 3 * leaseMillis);
    if (isTimerNext) return untilDue + (random.chance(0.3) ? some : 0);
    return some;
  }

  #of(replica: SimulatedReplica): Choice[] {
    const { name, life, connection } = replica;
    const choices: Choice[] = [];
    if (connection.firstSent !== undefined && !this.world.isRedisAway)
      choices.push([6, `run ${name}`]);
    if (life === 'frozen') choices.push([1, `thaw ${name}`]);
    if (replica.mailbox.hasAsked && replica.isAlive) choices.push([6, `subscribe ${name}`]);
    if (!replica.isRunning) return choices;
    choices.push(...this.#progress(replica), ...this.#wrong(replica));
    if (life === 'up') choices.push(...this.#people(replica));
    return choices;
  }

  #progress({ name, connection, mailbox, clock, hasTicks }: SimulatedReplica): Choice[] {
    const { world } = this;
    const choices: Choice[] = [];
    if (hasTicks) choices.push([this.#has('slow ticks') ? 5 : 100, `tick ${name}`]);
    if (clock.nextDueAt <= world.now) choices.push([8, `ring ${name}`]);
    if (connection.firstAnswered !== undefined) choices.push([6, `answer ${name}`]);
    if (mailbox.readable > 0) choices.push([6, `hear ${name}`]);
    if (connection.nextLimitAt <= world.now) choices.push([6, `time-out ${name}`]);
    if (connection.isBroken && !world.isRedisAway)
      choices.push([world.shape.isPrompt ? 1 : 3, `mend ${name}`]);
    return choices;
  }

  #wrong({ name, connection, mailbox, life }: SimulatedReplica): Choice[] {
    const { world } = this;
    const choices: Choice[] = [];
    const asked = connection.firstSent !== undefined;
    if (asked && this.#has('lose')) choices.push([1, `lose-call ${name}`]);
    if (asked && (this.#has('refuse') || world.isRedisAway)) {
      choices.push([world.shape.isPrompt ? 6 : 1, `refuse ${name}`]);
    }
    if (connection.firstAnswered !== undefined && this.#has('lose')) {
      choices.push([1.5, `lose-answer ${name}`]);
    }
    const index = this.random.whole(0, Math.max(0, mailbox.readable - 1));
    if (mailbox.readable > 0) {
      if (this.#has('drop')) choices.push([2, `drop ${name} ${index}`]);
      if (this.#has('double')) choices.push([1, `double ${name} ${index}`]);
      if (this.#has('reorder') && index > 0) choices.push([4, `hear ${name} ${index}`]);
    }
    if (this.#has('reconnect') && mailbox.isSubscribed) choices.push([0.5, `reconnect ${name}`]);
    const isOnlyOne = this.#has('waits at one') && name === REPLICA_NAMES[0];
    const often = isOnlyOne ? 4 : 1;
    if (this.#has('freeze') && life === 'up') choices.push([0.4 * often, `freeze ${name}`]);
    if (this.#has('kill')) choices.push([0.2 * often, `kill ${name}`]);
    if (this.#changesRules) choices.push([0.5, `rules ${name} ${this.#rules()}`]);
    if (this.#has('stop') && life === 'up') choices.push([0.2, `stop ${name}`]);
    return choices;
  }

  #people({ name }: SimulatedReplica): Choice[] {
    const { world, random } = this;
    const choices: Choice[] = [];
    if (this.#clients < MOST_CLIENTS) {
      // Its name is used up by the step, whether or not it is drawn.
      this.#clients = world.requests.size;
      const isLost = world.isRedisAway && world.shape.isPrompt;
      choices.push([isLost ? 0.3 : 3, this.#ask(name)]);
    }
    const ofReplica = [...world.clients.values()].filter(({ replica }) => replica === name);
    const present = ofReplica.filter(
      ({ canWait, presence }) => canWait && !presence.isDisconnected,
    );
    const leaving = present.filter(({ outcome }) => outcome === undefined);
    if (this.#has('leave') && leaving.length > 0) {
      choices.push([1.5, `leave ${name} ${random.pick(leaving).name}`]);
    }
    if (this.#has(NAMED)) choices.push(...this.#again(name));
    const approved = [...world.clients.values()].filter(({ outcome }) => outcome === 'approved');
    if (this.#has('release') && approved.length > 0) {
      choices.push([
        1.5,
        `release ${name} ${approved.at(-random.whole(1, Math.min(3, approved.length)))!.name}`,
      ]);
    }
    if (this.#has('pause')) choices.push([0.4, `pause ${name} ${this.#pause()}`]);
    if (this.#has(PAUSED_GROUPS)) {
      const group = this.#groupsRandom.pick(GROUPS);
      choices.push([0.8, `pause ${name} ${this.#pause()} group=${group}`]);
    }
    if (this.#has(REPORTS)) choices.push([0.6, `report ${name} ${this.#report()}`]);
    if (this.#has(REFUNDS)) choices.push([0.8, `refund ${name} ${this.#refundRandom.whole(1, 4)}`]);
    const held = approved.filter(({ askedHold }) => askedHold !== undefined);
    if (held.length > 0) {
      const { name: client } = random.pick(held.slice(-4));
      choices.push([1, `release ${name} ${client}`]);
      const words = [`amend ${name} ${random.pick(held.slice(-4)).name}`];
      if (random.chance(0.5)) words.push(`hold=${this.#hold()}`);
      if (this.#has('amend') && random.chance(0.3)) words.push(`hits=${random.whole(0, 5)}`);
      choices.push([2, words.join(' ')]);
    }
    if (this.#has('amend') && approved.length > 0) {
      const { name: client } = approved.at(-random.whole(1, Math.min(3, approved.length)))!;
      choices.push([2, `amend ${name} ${client} hits=${random.whole(0, 5)}`]);
    }
    return choices;
  }

  /** Mostly those that another replica has already, as when a file changes for all. */
  #rules(): string {
    const { random, world } = this;
    const isNew = this.#lastRules === undefined || random.chance(0.4);
    if (isNew) {
      const words = [`max=${random.whole(1, 4)}`, `queue=${random.whole(0, 5)}`];
      if (this.#has('windows')) words.push(`window=${random.pick(WINDOWS)}`);
      if (random.chance(0.5)) words.push(`most=${random.whole(-1, 3)}`);
      if (this.#has(ALGORITHMS)) {
        words.push(`algorithm=${formatAlgorithm(drawAlgorithm(this.#algorithmRandom))}`);
      }
      if (this.#has('limits') || this.#has(MAXIMA)) {
        const { further = [] } = this.#groupsRandom.pick(world.replicas).limits;
        const shared = this.#has('limits') ? this.#limits() : further;
        const limits = withLimitsOfGroups(shared, this.#limitsOfGroups(further));
        words.push(`limits=${formatFurther(limits)}`);
      }
      this.#lastRules = words.join(' ');
    }
    return this.#lastRules!;
  }

  /** Mostly those of some replica with one change. */
  #limits(): readonly FurtherLimit[] {
    const { random, world } = this;
    const { further: all = [] } = random.pick(world.replicas).limits;
    const further = all.filter(({ perGroup }) => !perGroup);
    if (further.length === 0) return drawFurther(random);
    const changed = random.pick(further);
    const others = further.filter((limit) => limit !== changed);
    const newName = LIMIT_NAMES.find((name) => !further.some((limit) => limit.name === name));
    return random.pick([
      () => [],
      () => others,
      () => (newName ? [...further, drawLimit(random, newName)] : further),
      () => [...others, drawLimit(random, changed.name)],
      () => [...others, { ...changed, maximum: random.whole(1, 4) }],
      () => [{ ...changed, windowMillis: random.pick(WINDOWS) }, ...others],
    ])();
  }

  /** Those of some replica, mostly with other maxima. @param further its limits */
  #limitsOfGroups(further: readonly FurtherLimit[]): readonly FurtherLimit[] {
    const random = this.#groupsRandom;
    const before = further.filter(({ perGroup }) => perGroup);
    if (!this.#has(MAXIMA)) return before;
    if (before.length === 0 || random.chance(0.2)) return drawLimitsOfGroups(random);
    if (random.chance(0.1)) return [];
    const windowMillis = random.chance(0.2) ? random.pick(WINDOWS) : undefined;
    return before.map((limit) => ({
      ...limit,
      maximum: random.whole(1, 3),
      perGroup: { maxima: drawMaxima(random) },
      ...(windowMillis !== undefined && { windowMillis }),
    }));
  }

  /** Of Redis's clock: from a millisecond to several windows, pauses, holds or leases. */
  #stepBack(): number {
    const { world } = this;
    const random = this.#clockRandom;
    const longest = random.pick([
      ...world.rules.windows,
      ...world.rules.furtherWindows,
      world.shape.leaseMillis,
      Math.max(1, world.longestPause),
      Math.max(1, world.longestHold),
    ]);
    return random.pick([
      1,
      random.whole(1, 50),
      random.whole(1, longest),
      longest,
      random.whole(1, 4) * longest,
    ]);
  }

  /** Of a key; 0 ends one. */
  #pause(): number {
    const { random, world } = this;
    const windowMillis = random.pick(world.rules.windows);
    return random.pick([0, random.whole(1, windowMillis), windowMillis, random.whole(1, 2000)]);
  }

  /** Of a vendor, mostly about a limit of some replica: for a part of a window, to the end of some, or beyond. */
  #report(): string {
    const { world } = this;
    const random = this.#reportRandom;
    const { further = [] } = random.pick(world.replicas).limits;
    const words = [`remaining=${random.whole(0, 3)}`];
    const windowMillis = random.pick([...world.rules.windows, ...world.rules.furtherWindows]);
    const reset = random.pick([
      undefined,
      random.whole(1, windowMillis),
      windowMillis * random.whole(1, 3),
      random.whole(1, 3000),
    ]);
    if (reset !== undefined) words.push(`reset=${reset}`);
    const names = random.chance(0.1) ? LIMIT_NAMES : further.map((limit) => limit.name);
    const limit = random.pick([undefined, ...names]);
    if (limit !== undefined) words.push(`limit=${limit}`);
    return words.join(' ');
  }

  /** Of a wait: up to some windows, often to the millisecond in which one may end. */
  #limit(): number {
    const { windows, furtherWindows } = this.world.rules;
    const windowMillis = this.random.pick([...windows, ...furtherWindows]);
    return this.random.chance(0.3)
      ? windowMillis * this.random.whole(1, 2)
      : this.random.whole(0, 3 * windowMillis);
  }

  /** Of a hold: within a window, to the end of some, or beyond. */
  #hold(): number {
    const { random, world } = this;
    const windowMillis = random.pick([...world.rules.windows, ...world.rules.furtherWindows]);
    return random.pick([
      random.whole(1, windowMillis),
      windowMillis * random.whole(1, 3),
      random.whole(1, 3000),
    ]);
  }

  /** Where all who wait do so at one replica, no other's calls tell that anybody is alive. */
  #canWait(replica: string): boolean {
    if (this.#has('waits at one') && replica !== REPLICA_NAMES[0]) return false;
    return !this.#has('no wait') || this.random.chance(0.7);
  }

  /** The caller of one of the last requests with ids of their callers asks again, or releases it. */
  #again(replica: string): Choice[] {
    const { world } = this;
    const random = this.#namedRandom;
    const named = [...world.requests.values()].filter(({ isNamed }) => isNamed);
    if (named.length === 0 || world.clients.size >= MOST_CHECKS) return [];
    const { id, newest } = random.pick(named.slice(-5));
    const { askedHits, askedHold, canWait } = newest;
    const words = [`again ${replica} ${id}`];
    const hits = random.chance(0.05) ? random.whole(1, 3) : askedHits;
    if (hits > 1) words.push(`hits=${hits}`);
    if (askedHold !== undefined) words.push(`hold=${askedHold}`);
    if (canWait ? random.chance(0.9) : random.chance(0.1)) {
      words.push('wait');
      if (this.#has('limited waits') && random.chance(0.3)) words.push(`limit=${this.#limit()}`);
      if (this.#has(KEPT)) words.push(...this.#keeps.words(newest));
    }
    if (this.#has(LISTS)) words.push(...this.#lists.words());
    const choices: Choice[] = [[2.5, words.join(' ')]];
    if (this.#has('release'))
      choices.push([0.5, `release ${replica} ${random.pick(named.slice(-5)).id}`]);
    return choices;
  }

  #ask(replica: string): string {
    const { random } = this;
    const words = [`ask ${replica} c${this.#clients + 1}`];
    const isNamed = this.#has(NAMED) && this.#namedRandom.chance(0.7);
    if (isNamed) words.push('named');
    if (this.#has('hits') && random.chance(0.4)) words.push(`hits=${random.whole(2, 4)}`);
    if (this.#has('hold') && random.chance(0.5)) words.push(`hold=${this.#hold()}`);
    if (this.#canWait(replica)) {
      words.push('wait');
      if (this.#has('limited waits') && random.chance(0.5)) words.push(`limit=${this.#limit()}`);
      if (isNamed && this.#has(KEPT)) words.push(...this.#keeps.words());
    }
    if (this.#has('override') && random.chance(0.3)) words.push(`max=${random.whole(1, 4)}`);
    if (this.#has('override') && random.chance(0.2)) words.push(`queue=${random.whole(0, 4)}`);
    if (this.#has('window override') && random.chance(0.2)) {
      words.push(`window=${random.pick(WINDOWS)}`);
    }
    if (this.#has(LISTS)) words.push(...this.#lists.words());
    return words.join(' ');
  }
}
