import { mkdirSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

import { forgetScripts } from '../../forget-scripts.js';
import { scrape } from '../../prometheus-text.js';
import { type ReplicaProcess, startReplica } from '../../replica-process.js';
import { misbehaviour } from '../checks/replicas.js';
import { Random } from '../random.js';
import { Standstills } from '../standstills.js';
import type { TopologyName } from '../topologies/topology.js';
import { lastUntil, within } from '../within.js';
import { Approvals } from './approvals.js';
import { Caller } from './caller.js';
import { type Cell, nameOf } from './cells.js';
import { Clients } from './clients.js';
import { type Fault, faultNamed } from './faults.js';
import { type LoadParts, LONGER_THAN_A_CELL } from './loads/load.js';
import { LOADS } from './loads/loads.js';
import { Network } from './network.js';
import { Requests } from './requests.js';
import { storedKeys } from './stored-keys.js';
import type { Store } from './stores/store.js';

const RESULTS = new URL('../../../long/results/', import.meta.url);

/** What docs/reliability.md promises, from the end of a fault on. */
const RECOVERED_WITHIN_MILLIS = 5000;
const CAUGHT_UP_WITHIN_MILLIS = 30_000;
const ENDED_WITHIN_MILLIS = 10_000;
const CHECKS_IN_A_ROW = 20;
/** How often a load has all keys that it may have, and the fewest keys of a load. */
const ALL_KEYS = 0.5;
const FEWEST_KEYS = 1000;
/** What a replica with nothing to do may take more of a CPU than before. */
const MORE_CPU = 0.1;

/** So long after a surge a machine with little else to do has decided it, and checks in a row. */
const QUICK_MILLIS = 1000;
/** No machine is slower, whatever a surge takes: the surge may be what a replica does not get over. */
const MOST_SLOWNESS = 4;
/** How long the load goes on before the fault. */
const WARM_UP_MILLIS = 1000;
const CHECKED_AGAIN_AFTER_MILLIS = 50;
const MOST_EXPLAINED = 5;
/** A surge is under way in various states when the fault comes. */
const MOST_AHEAD_MILLIS = 20;
/** A window ends so long after the surge that meets a fault, so that the calls of the surge wait at its end. */
const BEFORE_TURN_MILLIS = 60;

/** What became of a cell. Times are milliseconds from the end of the fault. */
export interface CellReport {
  readonly cell: string;
  readonly keys: number;
  /** How many approvals clients were told of. */
  readonly approvals: number;
  /** Until checks in a row had succeeded. */
  readonly recovered: number | undefined;
  /** Until every request was answered, all undone work done, and the CPU idle. */
  readonly caughtUp: number | undefined;
  /** By how much the machine was slower than one with little else to do; the bounds are so much longer. */
  readonly slowness: number;
  readonly violations: readonly string[];
}

/** Has a load meet a fault, with a replica of its own, and judges what comes of it. */
export async function runCell(
  topology: TopologyName,
  store: Store,
  cell: Cell,
  seed: number,
): Promise<CellReport> {
  const random = new Random(seed).fork(`${topology} ${nameOf(cell)}`);
  for (const primary of await store.primaries()) await primary.command('FLUSHALL');
  for (const server of store.servers) await forgetScripts(server);
  const network = await Network.start(store.servers);
  const standstills = new Standstills();
  try {
    const { maximum, mostKeys, firstWindowMillis = LONGER_THAN_A_CELL } = LOADS[cell.load];
    const fewestKeys = Math.min(FEWEST_KEYS, mostKeys);
    const drawn = random.chance(ALL_KEYS) ? mostKeys : random.whole(fewestKeys, mostKeys);
    const fault = faultNamed(cell.fault, { store, network, random: random.fork('fault') });
    const replica = await startReplica({
      WINDOW_MILLIS: String(firstWindowMillis),
      MAX_REQUESTS: String(maximum),
      GRPC_PORT: '0',
      GRPC_KEY_TEMPLATE: '{values}',
      ...store.settings,
      ...network.environment,
    });
    const trial = new Trial(cell, store, fault, replica, random, cell.keys ?? drawn, standstills);
    const report = await trial.run();
    if (report.violations.length > 0) keepLog(topology, cell, seed, replica);
    return report;
  } finally {
    standstills.stop();
    network.stop();
    await store.mend();
  }
}

class Trial {
  readonly #approvals = new Approvals();
  readonly #clients = new Clients();
  readonly #caller: Caller;
  readonly #requests: Requests;
  readonly #keys: readonly string[];
  readonly #violations: string[] = [];
  /** How much slower this machine is, for what else it has to do. */
  #slowness = 1;
  #probes = 0;
  /** When the last key's first window has ended, if that is in this cell. */
  #turnedAt: number | undefined;

  constructor(
    private readonly cell: Cell,
    private readonly store: Store,
    private readonly fault: Fault,
    private readonly replica: ReplicaProcess,
    private readonly random: Random,
    keyCount: number,
    private readonly standstills: Standstills,
  ) {
    this.#keys = Array.from({ length: keyCount }, (_, i) => `${cell.load}-${i}`);
    this.#caller = new Caller(replica.url);
    this.#requests = new Requests(this.#caller, this.#approvals);
  }

  async run(): Promise<CellReport> {
    const { replica, random } = this;
    const idleShare = await cpuShareOf(replica.url);
    LOADS[this.cell.load].begin(this.#loadParts());
    await delay(WARM_UP_MILLIS);
    // What the surge alone takes is no matter of the fault, but tells how busy the machine is.
    const beganAt = Date.now();
    this.#clients.surge();
    const problem = await this.#checksInARow(beganAt);
    if (problem !== undefined) this.#violations.push(`already without a fault: ${problem}`);
    const slowness = (Date.now() - beganAt) / QUICK_MILLIS;
    this.#slowness = Math.min(Math.max(1, slowness), MOST_SLOWNESS);
    this.#clients.slowDown(this.#slowness);

    await this.#untilBeforeTurn();
    await this.#meet(random.whole(0, MOST_AHEAD_MILLIS));
    const endedAt = Date.now();

    const recovered = await this.#recover(endedAt);
    const caughtUp = await this.#catchUp(endedAt, idleShare);
    this.#violations.push(...this.#clients.failures);
    await this.#end();
    return {
      cell: nameOf(this.cell),
      keys: this.#keys.length,
      approvals: this.#approvals.told,
      recovered,
      caughtUp,
      slowness: this.#slowness,
      violations: this.#violations,
    };
  }

  /** Makes the keys of a load whose windows end soon, and waits until the first of these ends is near. */
  async #untilBeforeTurn(): Promise<void> {
    const { makeKeys, firstWindowMillis } = LOADS[this.cell.load];
    if (!makeKeys || firstWindowMillis === undefined) return;
    const turnsAt = Date.now() + firstWindowMillis;
    await makeKeys(this.#loadParts());
    this.#turnedAt = Date.now() + firstWindowMillis;
    await delay(turnsAt - BEFORE_TURN_MILLIS - Date.now());
  }

  /** The fault comes a little after a surge began, or, at the end of a window, a little before: all of it waits then. */
  async #meet(millis: number): Promise<void> {
    if (this.#turnedAt === undefined) {
      this.#clients.surge();
      await delay(millis);
      await this.fault.happen();
      return;
    }
    const happening = this.fault.happen();
    await delay(millis);
    this.#clients.surge();
    await happening;
  }

  #loadParts(): LoadParts {
    const serving = this.replica.log.find(({ msg }) => msg === 'serving');
    return {
      clients: this.#clients,
      requests: this.#requests,
      approvals: this.#approvals,
      random: this.random.fork('load'),
      keys: this.#keys,
      grpcPort: Number(serving?.grpcPort),
      mayForget: this.fault.loses !== undefined,
    };
  }

  /** @returns when checks in a row had succeeded, while the load goes on */
  async #recover(endedAt: number): Promise<number | undefined> {
    const problem = await this.#checksInARow(endedAt);
    const millis = this.#sinceEnd(endedAt);
    if (problem !== undefined) {
      this.#violations.push(`no ${CHECKS_IN_A_ROW} checks in a row succeed: ${problem}`);
      return undefined;
    }
    const allowed = this.#within(RECOVERED_WITHIN_MILLIS);
    if (millis > allowed) {
      this.#violations.push(`checks succeed in a row after ${millis} ms, not ${allowed}`);
    }
    return millis;
  }

  /** Checks until CHECKS_IN_A_ROW have succeeded. Returns the problem of the last check if that takes too long. */
  async #checksInARow(since: number): Promise<string | undefined> {
    let inARow = 0;
    while (inARow < CHECKS_IN_A_ROW) {
      const problem = await this.#problemOfCheck();
      if (problem !== undefined && this.#isOver(since)) return problem;
      inARow = problem === undefined ? inARow + 1 : 0;
      if (inARow === 0) await delay(CHECKED_AGAIN_AFTER_MILLIS);
    }
    return undefined;
  }

  async #problemOfCheck(): Promise<string | undefined> {
    this.#probes += 1;
    try {
      const held = await within(this.#within(RECOVERED_WITHIN_MILLIS), 'an answer', () =>
        this.#requests.check(`probe-${this.#probes}`),
      );
      return held ? undefined : 'not approved';
    } catch (error) {
      return String(error);
    }
  }

  /** Ends the load. @returns when there was nothing left to do, and nothing was lost or counted twice */
  async #catchUp(endedAt: number, idleShare: number): Promise<number | undefined> {
    const isOver = (): boolean => this.#isOver(endedAt);
    const stopped = this.#clients.stop().then(() => true);
    const haveStopped = await lastUntil(
      isOver,
      () => Promise.race([stopped, Promise.resolve(false)]),
      Boolean,
    );
    if (!haveStopped) {
      this.#violations.push(`not answered, or not done: ${this.#clients.busy}`);
      this.#violations.push(...(await this.#waitedFor()));
      return undefined;
    }
    // A look at all keys takes time of this machine and of Redis, which the replica needs until nothing is undone.
    await lastUntil(
      isOver,
      () => undoneOf(this.replica.url),
      (undone) => undone === undefined,
    );
    const left = await lastUntil(
      isOver,
      () => this.#left(endedAt, idleShare),
      (problems) => problems.length === 0,
    );
    this.#violations.push(...left);
    return left.length > 0 ? undefined : this.#sinceEnd(endedAt);
  }

  /** Some of the keys in whose queues somebody is. */
  async #waitedFor(): Promise<string[]> {
    const stored = [...(await storedKeys(await this.store.primaries()))];
    return stored
      .filter(([, { waiting }]) => waiting > 0)
      .slice(0, MOST_EXPLAINED)
      .map(([key, value]) => this.#approvals.explain(key, value));
  }

  /** What is left of the fault. */
  async #left(endedAt: number, idleShare: number): Promise<string[]> {
    const { loses } = this.fault;
    const stored = await storedKeys(await this.store.primaries());
    const left = this.#approvals.differences(stored, LOADS[this.cell.load].maximum, {
      forgetting: loses && { loses, endedAt },
      isOver: (key, sentAt) => this.#mayBeOver(key, sentAt),
    });
    const undone = await undoneOf(this.replica.url);
    if (undone !== undefined) left.push(`undone: ${undone}`);
    const share = await cpuShareOf(this.replica.url);
    if (share > idleShare + MORE_CPU) {
      left.push(`${percent(share)} of a CPU with nothing to do, ${percent(idleShare)} before`);
    }
    return left;
  }

  /** Whether the window of an approval may be over. Keys of the load have their long window then, and others short ones. */
  #mayBeOver(key: string, sentAt: number): boolean {
    const { firstWindowMillis } = LOADS[this.cell.load];
    if (firstWindowMillis === undefined) return false;
    if (this.#keys.includes(key)) return sentAt < (this.#turnedAt ?? -Infinity);
    return sentAt + firstWindowMillis <= Date.now();
  }

  /** What a time becomes on this machine, in whole milliseconds. */
  #within(millis: number): number {
    return Math.round(millis * this.#slowness);
  }

  /** Whether all should have been done by now. However busy the machine is, that ends. */
  #isOver(since: number): boolean {
    const isLate = this.#sinceEnd(since) > this.#within(CAUGHT_UP_WITHIN_MILLIS);
    return isLate || Date.now() - since > MOST_SLOWNESS * CAUGHT_UP_WITHIN_MILLIS;
  }

  /** Without the time in which this machine stood still. */
  #sinceEnd(endedAt: number): number {
    const now = Date.now();
    return now - endedAt - this.standstills.millisWithin(endedAt, now);
  }

  async #end(): Promise<void> {
    this.#clients.end();
    this.#caller.close();
    const member = { index: 0, process: this.replica, wasKilled: false };
    // One that is not well may take long to stop.
    if (this.#violations.length > 0) {
      await this.replica.kill('SIGKILL');
      this.#violations.push(...misbehaviour([member], []));
      return;
    }
    try {
      const code = await within(this.#within(ENDED_WITHIN_MILLIS), 'the end', () =>
        this.replica.kill('SIGTERM'),
      );
      this.#violations.push(...misbehaviour([member], [{ member, code }]));
    } catch (error) {
      this.#violations.push(`after SIGTERM: ${String(error)}`);
      await this.replica.kill('SIGKILL');
    }
  }
}

/** Writes down what the replica of a cell said that went wrong. */
function keepLog(
  topology: TopologyName,
  { load, fault }: Cell,
  seed: number,
  { log }: ReplicaProcess,
): void {
  mkdirSync(RESULTS, { recursive: true });
  const file = new URL(`${topology}-${load}-${fault}-${seed}.replica.txt`, RESULTS);
  writeFileSync(file, log.map((line) => JSON.stringify(line)).join('\n'));
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

/** What Redis is still to be told after an outage. */
const UNDONE = 'ratelimit_store_catch_up_pending';
const CPU_SECONDS = 'process_cpu_seconds_total';
const CPU_SPAN_MILLIS = 400;

/** How much is undone, by kind; undefined if nothing is. @throws Error if the replica does not say */
async function undoneOf(url: string): Promise<string | undefined> {
  const gauges = Object.entries((await scrape(url)).valuesOf(UNDONE));
  if (gauges.length === 0) throw new Error(`the replica has no ${UNDONE}`);
  const undone = gauges.filter(([, value]) => value > 0);
  return undone.length === 0 ? undefined : undone.map((entry) => entry.join(' ')).join(', ');
}

/** The share of one CPU that a replica takes. */
async function cpuShareOf(url: string): Promise<number> {
  const before = await cpuSeconds(url);
  const startedAt = performance.now();
  await delay(CPU_SPAN_MILLIS);
  const seconds = (await cpuSeconds(url)) - before;
  return seconds / ((performance.now() - startedAt) / 1000);
}

async function cpuSeconds(url: string): Promise<number> {
  return (await scrape(url)).value(CPU_SECONDS);
}
