import { isDeepStrictEqual } from 'node:util';

import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import type { SimulatedClient } from './client.js';
import { byNow, checkNothingLastsLonger, lapseByNow } from './clock-went-back.js';
import { FurtherAccount, takes } from './further-account.js';
import { areSameFurther, type KeptLimits, limitsDuring, limitsOf } from './limits-model.js';
import type { ScriptRun } from './script-run.js';
import type { RulesGiven } from './rules-given.js';
import type { WorldShape } from './shape.js';
import type { Snapshot } from './snapshot.js';
import type { Change } from './stored-key.js';
import { violate, Violation } from './violation.js';
import type { StoredState } from '../stored-state.js';

/** As lua/lib/recovery.lua has it. */
const RECOVERY_MILLIS = 500;
const LEASE_PART_LEFT = 0.4;
/** What all replicas are told when Redis seems to have lost the key. */
const MEMORY_LOST = '{"memoryLost":true}';
/** As lua/check.lua replies. */
const APPROVED = 1;
const TURN_TOO_LATE = VERDICT.turnTooLate;
/** The replies to an amendment of an approval that is not held, and of one that does not count. */
const OF_WINDOW = -1;
const NOT_FOUND = -2;

/** What a judge knows of a world beside the calls. */
export interface JudgedWorld {
  readonly shape: WorldShape;
  readonly rules: RulesGiven;
  /** The world's time, which never goes back. */
  readonly now: number;
  readonly hasLostMemory: boolean;
  readonly clients: ReadonlyMap<string, SimulatedClient>;
  clientOf(requestId: string): SimulatedClient | undefined;
  clientOfTicket(ticket: number): SimulatedClient | undefined;
  /** Whether everything comes to this replica without delay, and always has. */
  isPunctual(replica: string): boolean;
  /** Whether everything comes to this replica without delay while Redis is there, and soon after it is back. */
  returnsInTime(replica: string): boolean;
  /** The waiters that their replicas put back if Redis has lost them. */
  waitersToReturn(): Iterable<SimulatedClient>;
}

/** Holds each script call against what has been seen before. */
export class Judge {
  #calls = 0;
  /** The highest maximum that the window which began then has had, and who is approved in it. */
  #window = { start: -1, highest: 0, approved: new Set<string>() };
  /** The highest maximum in force during the last call. */
  #maximumOfCall = Infinity;
  /** The start of the window of a lost key that was made again for those who wait, which is full from the beginning. */
  #restored = -1;
  /** Redis has lost a part of what it knew of the key since the key was made. */
  #isTorn = false;
  /** Somebody has removed a part of the queue, and what is left shows that others waited. */
  #isQueueTorn = false;
  /** Redis has lost everything, and a replica that waits has shown it so in time. */
  #isLossKnown = false;
  /** Until when the key is paused; 0 if it is not. */
  #pausedUntil = 0;
  /** The length of the pause, and when it ends by the world's time. */
  #pause = { millis: 0, endsAt: 0 };
  /** The last script call before Redis's clock went back. */
  steppedAfter = 0;
  /** When Redis's clock went back last, by the world's time. */
  #steppedAt = -Infinity;
  /** When the leases end that a renewal has extended last, by replica. */
  readonly #renewed = new Map<string, number>();
  /** The last call that opened the key has found it idle. */
  #wasIdle = false;
  /** This call finds a key that was idle, and that the clock has taken back to before. */
  #isRevived = false;
  /** Redis's clock has gone back, and no call has opened the key since. */
  #isBehind = false;
  /** The approvals in the windows of further limits. */
  readonly #further = new FurtherAccount(() => ({
    hits: this.#heldHits,
    approvals: this.#held.length,
  }));
  /** The limits of this call do not follow from the calls: those that a replica tells of a key that Redis has lost. */
  #isFurtherUnknown = false;
  /** This call has approved an id that a further limit had already. */
  #isGivenAgain = false;
  /** The ids of which this call gives something back to further limits. */
  #givenBack = new Set<string>();

  constructor(private readonly world: JudgedWorld) {}

  /**
   * Redis has lost keys.
   * @param isShown whether what is left shows that others waited, and has them come back in a recovery of their own: a queue
   *   that is lost as a whole does not, and what is lost in a recovery has what is left of that
   */
  memoryLost(
    clients: Iterable<SimulatedClient>,
    lost: 'everything' | 'a part' | 'queue',
    isShown: boolean,
  ): void {
    const isWhole = lost === 'everything';
    this.#isQueueTorn = lost === 'queue' && isShown;
    for (const { approval } of clients) {
      if (approval && lost !== 'queue') approval.isForgotten = true;
    }
    this.#isTorn = !isWhole;
    this.#isLossKnown = false;
    this.#further.begin(0, []);
    if (isWhole) this.#window = { start: -1, highest: 0, approved: new Set() };
  }

  /**
   * Redis's clock has gone back. What Redis promises to remember for some time is remembered for that time by the world's
   * time.
   */
  clockWentBack(clients: Iterable<SimulatedClient>, millis: number): void {
    this.#isBehind = true;
    this.steppedAfter = this.#calls;
    this.#steppedAt = this.world.now;
    for (const client of clients) {
      const { approval } = client;
      if (approval) {
        client.approval = { ...approval, windowEnd: approval.windowEnd - millis };
      }
    }
  }

  /** @param reply what the script replied */
  judge(called: ScriptRun, reply: unknown, { before: stored, after, messages }: Change): void {
    this.#calls += 1;
    const run = needsAllNames(reply) ? { ...called, requestIds: [], batches: [] } : called;
    const isOpened = opensKey(run) && !needsAllNames(reply);
    const isFirstByClock = this.#isBehind && isOpened;
    this.#isRevived = false;
    const before = this.#sinceStep(run, stored, isFirstByClock);
    const isNewWindow = after.state?.start !== before.state?.start;
    if (after.state && before.state && isMadeAgain(run, before, after)) this.#isTorn = false;
    if (after.state?.born !== before.state?.born) {
      const { born = 0, start = -1 } = after.state ?? {};
      const isRestored = !before.state && run.lowestTicket < born * 1000;
      this.#restored = isRestored ? start : -1;
    }
    // Other calls do not look at holds, which may go on if the clock goes back before one does.
    if (isOpened) this.#lapse(run.now);
    this.#forget(run);
    this.#checkWindow(run, before, after);
    const heldBefore = new Set(this.#held.map(({ name }) => name));
    const during = this.#trackMaximum(run, before, after);
    if (isOpened) {
      this.#trackPause(run, before, after, isFirstByClock);
      this.#trackFurther(run, during, before, after);
    }
    this.#given(run, before, after);
    this.#amended(run, reply, after);
    const heldNow = this.#newlyHeld(run, after);
    const approved = [
      ...[...after.requests].filter((id) => isNewWindow || !before.requests.has(id)),
      ...heldNow,
    ];
    this.#isGivenAgain = false;
    for (const id of approved) this.#approved(id, run, before, after);
    if (isOpened) {
      this.#checkHeld(after);
      this.#checkFurther(run, approved, after);
      this.#checkPause(run, approved, after);
    }
    this.#checkCount(approved, after);
    this.#checkOrder(run, approved, before, after);
    this.#checkReturn(run, approved, after);
    this.#checkNobodyIsLost(run, approved, before, after);
    this.#checkReply(run, reply, before, isNewWindow, heldBefore);
    this.#checkForetoldTurn(run, reply, before, after);
    this.#checkRecovery(run, { before, after, messages });
    this.#checkRoomIsTaken(run, reply, before, after);
    if (run.script === 'settle') this.#checkHoldsLeft(run, reply, after);
    if (isOpened) this.#wasIdle = isIdle(after, run.now);
    if (isOpened && !this.#wasIdle) this.#checkTimes(run, before, after);
    if (run.script === 'renew') this.#checkRenewal(run, before, after);
    else if (!needsAllNames(reply)) this.#checkRoomIsUsed(run, after);
  }

  /**
   * What was stored before a call, as that call has to take it if the clock has gone back. With the key's first call after
   * a step, all that is known of the key counts by the new time. Only that call may change what has begun: from then on
   * the same rules hold as usual.
   */
  #sinceStep({ now }: ScriptRun, stored: Snapshot, isFirst: boolean): Snapshot {
    const { state } = stored;
    if (!state) return stored;
    // The next call that asks since when limits are in force has them in force since now.
    const limitsSince = Math.min(state.limitsSince, now);
    const before = { ...stored, state: { ...state, limitsSince } };
    if (!isFirst) return before;
    this.#isBehind = false;
    this.#isRevived = this.#wasIdle;
    const { start } = byNow(before, now).state!;
    if (this.#window.start === state.start) this.#window = { ...this.#window, start };
    // The windows of an idle key are over, and their approvals are forgotten.
    if (this.#isRevived) this.#window.approved.clear();
    if (this.#restored === state.start) this.#restored = start;
    this.#further.beginByNow(now, stored.limits);
    for (const client of this.#held) {
      const lapsesAt = lapseByNow(client.hold!, now);
      client.hold = { ...client.hold!, lapsesAt };
      client.heldUntil = lapsesAt;
    }
    return byNow(before, now);
  }

  /** The clients whose approvals are held, as the calls have it. */
  get #held(): SimulatedClient[] {
    return [...this.world.clients.values()].filter(({ hold }) => hold !== undefined);
  }

  /** Ends holds. Redis does not remember them. */
  #lapse(now: number): void {
    for (const client of this.#held) {
      if (client.hold!.lapsesAt > now) continue;
      client.hold = undefined;
      if (client.approval) client.approval.isForgotten = true;
    }
  }

  /** Takes note of the approvals that are held from this call on, which have to be as they were asked for. */
  #newlyHeld({ now }: ScriptRun, { holds, requests }: Snapshot): string[] {
    const ids = [...holds].flatMap(([id, { lapsesAt }]) =>
      lapsesAt > now && !this.world.clientOf(id)?.hold ? [id] : [],
    );
    for (const id of ids) {
      const client = this.world.clientOf(id);
      const { lapsesAt, hits } = holds.get(id)!;
      const millis = client?.askedHold ?? 0;
      if (client?.askedHits !== hits || lapsesAt !== now + millis) {
        throw new Violation('an approval is held as asked for', `${id} for ${lapsesAt - now} ms`);
      }
      client.hold = { lapsesAt, millis };
      client.heldUntil = lapsesAt;
    }
    const notHeld = [...requests].find((id) => this.world.clientOf(id)?.askedHold !== undefined);
    if (notHeld !== undefined) {
      throw new Violation('an approval is held as asked for', `${notHeld} is not held`);
    }
    return ids;
  }

  /** A settle tells how long the holds of the waiters it was asked about last. */
  #checkHoldsLeft({ now }: ScriptRun, reply: unknown, { holds }: Snapshot): void {
    for (const part of reply as readonly unknown[]) {
      const [, id = '', millis] = /^([^~]*)~(\d+)$/.exec(String(part)) ?? [];
      const hold = holds.get(id);
      if (hold === undefined || hold.lapsesAt - now === Number(millis)) continue;
      const detail = `${millis} ms of ${id}, not ${hold.lapsesAt - now}`;
      throw new Violation('a hold lasts as long as a settle tells', detail);
    }
  }

  /** A held approval counts until it is released or lapses, in every window in between, and in none after. */
  #checkHeld({ state, requests, holds, waiting }: Snapshot): void {
    if (this.#isTorn) return;
    const held = this.#held;
    const expected = held.map(({ name, hold, hits }) => `${name} ${hold!.lapsesAt} ${hits}`).sort();
    const stored = [...holds].map(([id, { lapsesAt, hits }]) => `${id} ${lapsesAt} ${hits}`).sort();
    if (!isDeepStrictEqual(stored, expected)) {
      const detail = `${stored.join(', ') || 'nothing'}, not ${expected.join(', ') || 'nothing'}`;
      throw new Violation('a held approval counts until it is released or lapses', detail);
    }
    const waits = held.find(({ name }) => waiting.has(name));
    if (waits) throw new Violation('who is approved waits no more', waits.name);
    if (!state || state.start === this.#restored) return;
    const count = this.#hitsOf(requests) + this.#heldHits;
    if (state.approved !== count) {
      throw new Violation('an approval counts once', `${state.approved} counted, not ${count}`);
    }
  }

  get #heldHits(): number {
    return this.#held.reduce((sum, { hits }) => sum + hits, 0);
  }

  /** A check that is sent again after Redis has forgotten its approval is decided as if it were new. */
  #forget({ script, requestIds, now }: ScriptRun): void {
    if (script !== 'check') return;
    for (const id of requestIds) {
      const approval = this.world.clientOf(id)?.approval;
      if (this.world.clientOf(id)?.hold) continue;
      if (approval && now >= this.#rememberedUntil(approval.windowEnd)) approval.isForgotten = true;
    }
  }

  /** Windows follow back to back. */
  #checkWindow(run: ScriptRun, before: Snapshot, after: Snapshot): void {
    const { now } = run;
    const { state } = after;
    if (!state) return;
    const fail = (detail: string): never => {
      throw new Violation('windows are back to back', detail);
    };
    if (!before.state || this.#isTorn) return;
    const was = before.state;
    const shift = state.start - was.start;
    if (!isMadeAgain(run, before, after)) {
      // Another length counts from the boundary on that was to come next.
      const inGrid = (now - was.start) % was.window;
      const shiftInOthers = state.start - (now - inGrid);
      const isBackToBack =
        state.window === was.window
          ? shift % was.window === 0
          : now >= was.start + was.window && shiftInOthers % state.window === 0;
      if (shift < 0 || !isBackToBack) fail(`shifted by ${shift}`);
    } else if (now < was.expires) {
      fail(`begun again ${was.expires - now} ms before the key was idle`);
    }
  }

  /** Limits are those that rules and requests give, and each counts from the call that brings it. */
  #trackMaximum(run: ScriptRun, before: Snapshot, after: Snapshot): readonly KeptLimits[] {
    const { state } = after;
    if (!state || run.script === 'inspect') return [];
    const during = limitsDuring(
      run,
      isMadeAgain(run, before, after) ? undefined : before.state,
      before.state?.start !== state.start,
    );
    const [is, expected] = [limitsOf(state), during.at(-1)].map((kept) => JSON.stringify(kept));
    // What is left of a torn queue does not tell whether the key was idle. A replica tells the limits of a lost key.
    const isKnown = before.isConsistent && run.lowestTicket >= state.born * 1000;
    // In a key that was idle, the windows from before may go on.
    this.#isFurtherUnknown = !isKnown || this.#isRevived;
    if (is !== expected && isKnown && !isIdle(after, run.now)) {
      throw new Violation('limits follow the rules and the requests', `${is}, not ${expected}`);
    }
    if (!this.world.rules.windows.includes(state.window)) {
      throw new Violation('a window is as long as rules say', `${state.window} ms`);
    }
    const hasOwnMaximum = state.overridden.includes('max');
    const isOfRules = !hasOwnMaximum && !this.world.rules.isOfRequest(state.window);
    if (isOfRules && !this.world.rules.hasUnit(state.window, state.max)) {
      violate('a maximum comes with its window', `${state.max} in ${state.window} ms`);
    }
    // A state that was lost and made again in the same millisecond has another window.
    const isSame = before.state !== undefined && this.#window.start === state.start;
    // Held approvals stay, although the maximum may be lower in this window.
    const highest = this.#heldHits;
    if (!isSame) this.#window = { start: state.start, highest, approved: new Set() };
    const maxima = during.map(({ max }) => max.value);
    // A waiter from before a loss brings the maximum of that time back, also if the key has been idle since.
    const isFromBefore = run.lowestTicket < state.born * 1000;
    if (isFromBefore && run.knownMaximum !== undefined) maxima.push(run.knownMaximum);
    this.#maximumOfCall = Math.max(...maxima);
    this.#window.highest = Math.max(this.#window.highest, this.#maximumOfCall);
    return during;
  }

  #trackPause(run: ScriptRun, before: Snapshot, after: Snapshot, isFirstByClock: boolean): void {
    const { state } = after;
    if (!state || isMadeAgain(run, before, after)) this.#pausedUntil = 0;
    if (this.#isTorn) this.#pausedUntil = state?.pausedUntil ?? 0;
    const { pauseMillis, now } = run;
    if (state && pauseMillis !== undefined) {
      this.#pausedUntil = pauseMillis > 0 ? now + pauseMillis : 0;
      this.#pause = { millis: pauseMillis, endsAt: this.world.now + pauseMillis };
    } else if (state && this.#isRevived && state.pausedUntil > now) {
      this.#pausedUntil = Math.min(state.pausedUntil, now + this.#pause.millis);
    } else if (state && isFirstByClock && this.#pausedUntil > now) {
      this.#pausedUntil = this.#pauseByNow(now, state.pausedUntil);
    }
    // A call that has found it over has ended it, also if the clock goes back afterwards.
    if (this.#pausedUntil <= now) this.#pausedUntil = 0;
  }

  /**
   * Until when a pause lasts that was set before the clock went back: no longer than its length from now on, and no
   * shorter than by the world's time. Redis knows the step only as far as the times show it that it has.
   */
  #pauseByNow(now: number, stored: number): number {
    const earliest = now + Math.max(1, this.#pause.endsAt - this.world.now);
    const latest = Math.min(this.#pausedUntil, now + this.#pause.millis);
    if (stored >= earliest && stored <= latest) return stored;
    const detail = `${stored - now} ms, not ${earliest - now} to ${latest - now}`;
    throw new Violation('a pause is as long as asked for after a step of the clock', detail);
  }

  /** Until it ends, a pause keeps everybody out. */
  #checkPause({ now }: ScriptRun, approved: readonly string[], after: Snapshot): void {
    const { state } = after;
    if (!state || this.#isTorn || isIdle(after, now)) return;
    const expected = this.#pausedUntil > now ? this.#pausedUntil : 0;
    if (state.pausedUntil !== expected) {
      throw new Violation('a pause is as long as asked for', `until ${state.pausedUntil}`);
    }
    if (expected > 0 && approved.length > 0) {
      throw new Violation('nobody is approved in a pause', approved.join(' '));
    }
  }

  /** Windows of further limits that are over begin again, and other rules come into force. */
  #trackFurther(
    run: ScriptRun,
    during: readonly KeptLimits[],
    before: Snapshot,
    after: Snapshot,
  ): void {
    const { now } = run;
    if (this.#isTorn) return;
    if (isIdle(after, now) || isMadeAgain(run, before, after)) {
      const [forgotten] = this.#further.approvedAt(now);
      if (forgotten !== undefined) {
        throw new Violation('a key stays until the last of its windows ends', forgotten);
      }
      this.#further.begin(now, isIdle(after, now) ? [] : run.limits.further);
    }
    if (isIdle(after, now)) return;
    this.#further.roll(now);
    const limits = during.at(-1)?.further ?? [];
    if (!areSameFurther(limits, this.#further.limits)) {
      this.#further.take(now, limits);
      // Some of its approvals may be from before the limits came.
      if (!areSameFurther(limits, during[0]!.further)) this.#isFurtherUnknown = true;
    }
  }

  /** Redis has stored of further limits what follows from the calls. */
  #checkFurther({ now }: ScriptRun, approved: readonly string[], after: Snapshot): void {
    const { state, limits } = after;
    if (this.#isTorn) return;
    const [stored, isGone] = [state?.further ?? [], isIdle(after, now)];
    if (this.#isFurtherUnknown && !isGone) {
      this.#further.adopt(stored, limits);
      return;
    }
    this.#further.compareIds(limits, approved);
    if (isGone) return;
    this.#further.compareState(stored);
    this.#further.checkMaxima(
      approved.map((id) => ({ id, hits: this.world.clientOf(id)?.hits ?? 1 })),
    );
  }

  /** Takes note of what was withdrawn or released. */
  #given(run: ScriptRun, before: Snapshot, after: Snapshot): void {
    this.#givenBack = new Set();
    if (run.script !== 'withdraw' && run.script !== 'release') return;
    for (const id of run.requestIds) {
      const client = this.world.clientOf(id);
      if (!client) continue;
      client.withdrawnBy = this.#calls;
      if (this.#further.release(id, run.script === 'withdraw')) {
        this.#givenBack.add(id);
        client.releasedBy = this.#calls;
      }
      // A settle under way when its waiter is told, with a loss of memory in between, puts it back although
      // nobody needs it. The release is a 404 then, and may serve the place: docs/reliability.md.
      const isServedByRelease = run.script === 'release' && before.waiting.has(id);
      const isStored = after.requests.has(id) || after.holds.has(id);
      const isApproved = after.state !== undefined && isStored && !isServedByRelease;
      if (isApproved || (run.script === 'withdraw' && after.waiting.has(id))) {
        throw new Violation('who is withdrawn has left Redis', `${id} is still there`);
      }
      if (before.requests.has(id) && this.#window.approved.delete(id)) {
        client.releasedBy = this.#calls;
      }
      if (client.hold && !isServedByRelease) this.#released(client, after);
    }
  }

  /** From now on, its id is remembered as one of the window. */
  #released(client: SimulatedClient, { state }: Snapshot): void {
    client.hold = undefined;
    client.releasedBy = this.#calls;
    if (!client.approval || !state) return;
    client.approval = { ...client.approval, windowEnd: state.start + state.window };
  }

  /** Takes note of corrected hits and of renewed holds: those that have not lapsed. */
  #amended(
    { script, requestIds, hits, holdMillis, now }: ScriptRun,
    reply: unknown,
    { requests }: Snapshot,
  ): void {
    if (script !== 'amend') return;
    const client = this.world.clientOf(requestIds[0] ?? '');
    if (!client) return;
    const millis = client.hold && (holdMillis ?? client.hold.millis);
    const amendsHits =
      hits !== undefined && (client.hold !== undefined || holdMillis === undefined);
    const isOfFurther = amendsHits && this.#further.amend(client.name, hits);
    const isOfWindow = isOfFurther || (amendsHits && requests.has(client.name));
    const expected = millis ?? (isOfWindow ? OF_WINDOW : NOT_FOUND);
    if (reply !== expected && !this.#isTorn) {
      const found = `${client.name}: ${String(reply)}, not ${expected}`;
      throw new Violation('a renewal finds what is held', found);
    }
    if (reply === NOT_FOUND) return;
    if (millis !== undefined) {
      client.hold = { lapsesAt: now + millis, millis };
      client.heldUntil = now + millis;
    }
    if (hits === undefined) return;
    client.hits = hits;
    client.isAmended = true;
  }

  #approved(id: string, run: ScriptRun, before: Snapshot, { state }: Snapshot): void {
    const { now } = run;
    const client = this.world.clientOf(id);
    if (!client) throw new Violation('only those who ask are approved', id);
    const { approval } = client;
    if (!client.hold) this.#window.approved.add(id);
    client.hits = client.askedHits;
    client.isAmended = false;
    if (this.#further.approve(id, client.hits, client.hold !== undefined))
      this.#isGivenAgain = true;
    if (approval && !approval.isForgotten && now < this.#rememberedUntil(approval.windowEnd)) {
      const released = client.releasedBy === undefined ? '' : ', and released,';
      throw new Violation('nobody is approved twice', `${id}${released} is approved again`);
    }
    const place = before.waiting.get(id);
    const isDead = place && (before.leases[place.replica] ?? 0) <= now;
    if (isDead && place.replica !== run.replica) {
      throw new Violation('the dead take no place from the living', `${id} is approved`);
    }
    client.approval = {
      window: state!.start,
      windowEnd: state!.start + state!.window,
      call: this.#calls,
      isForgotten: false,
    };
    client.releasedBy = undefined;
  }

  #checkCount(newlyApproved: readonly string[], { state, requests }: Snapshot): void {
    if (!state) return;
    const { highest, approved } = this.#window;
    const held = this.#held.map(({ name }) => name);
    const inWindow = Math.max(this.#hitsOf(approved), this.#hitsOf(requests));
    const count = inWindow + this.#heldHits;
    const ofAll = [...requests, ...held];
    // More hits than a check asked for may exceed it. In a torn key only a further limit may know of them.
    const isAmended = [...ofAll, ...approved].some((id) => this.world.clientOf(id)?.isAmended);
    const most = held.length > 0 && newlyApproved.length > 0 ? this.#maximumOfCall : highest;
    // A waiter that needs more than the maximum, which was lowered since, gets a window for itself.
    if (count > most && ofAll.length > 1 && !isAmended) {
      throw new Violation('no more than the maximum', `${count} of ${most} in a window`);
    }
    if (!this.#isTorn && this.#hitsOf(ofAll) > state.approved) {
      const ids = ofAll.join(' ');
      throw new Violation('approvals are counted', `${ids}, ${state.approved} counted`);
    }
  }

  #hitsOf(ids: Iterable<string>): number {
    let hits = 0;
    for (const id of ids) hits += this.world.clientOf(id)?.hits ?? 1;
    return hits;
  }

  #checkOrder(
    run: ScriptRun,
    approved: readonly string[],
    before: Snapshot,
    after: Snapshot,
  ): void {
    const isSameKey = !isMadeAgain(run, before, after);
    if (approved.length > 0 && isSameKey && run.now < (before.state?.holdUntil ?? 0)) {
      throw new Violation('nobody is approved while a key recovers', approved.join(' '));
    }
    for (const id of approved) {
      const ticket = before.waiting.get(id)?.ticket ?? run.tickets.get(id);
      for (const [other, place] of after.waiting) {
        const isOvertaken =
          ticket === undefined ? this.#isKnownToWait(other, run, before) : place.ticket < ticket;
        if (!isOvertaken) continue;
        const rule =
          ticket === undefined
            ? 'newcomers wait behind those who wait'
            : 'first come, first served';
        throw new Violation(rule, `${id} is approved before ${other}`);
      }
      if (after.waiting.has(id)) throw new Violation('who is approved waits no more', id);
    }
  }

  /** Whether it waited, and its replica was thought alive, or says with its call that it has waiters. */
  #isKnownToWait(id: string, run: ScriptRun, { waiting, leases }: Snapshot): boolean {
    const place = waiting.get(id);
    if (!place) return false;
    const isAlive =
      (leases[place.replica] ?? 0) > run.now || this.world.returnsInTime(place.replica);
    // A check that is sent again after its lease has lapsed is decided again, in the order of its call.
    const isSentAgain = run.requestIds.includes(id);
    const isOfCaller = place.replica === run.replica && run.lowestTicket <= place.ticket;
    return isAlive || (isOfCaller && !isSentAgain);
  }

  /** Waiters from before Redis lost its memory come first, once it could know of them. */
  #checkReturn(run: ScriptRun, approved: readonly string[], { state, waiting }: Snapshot): void {
    for (const [id, { ticket }] of waiting) this.world.clientOf(id)!.ticket ??= ticket;
    const wasKnown = this.#isLossKnown;
    if (state && run.lowestTicket < state.born * 1000 && run.now < state.born + RECOVERY_MILLIS) {
      this.#isLossKnown = true;
    }
    // Of several batches, one may be from before anybody waited at its replica, as far as that knew.
    const isKnown = wasKnown || (this.#isLossKnown && run.batches.length <= 1);
    if (this.#isTorn ? !this.#isQueueTorn : !isKnown) return;
    const rule = this.#isTorn ? 'a torn queue keeps its order' : 'a loss changes no order';
    for (const id of approved) {
      const { ticket = Infinity } = this.world.clientOf(id)!;
      for (const other of this.world.waitersToReturn()) {
        if (other.ticket === undefined || other.ticket >= ticket || waiting.has(other.name))
          continue;
        if (other.approval?.isForgotten === false) continue;
        violate(rule, `${id} is approved before ${other.name}`);
      }
    }
  }

  /** Places are lost with leases only. */
  #checkNobodyIsLost(
    { script, requestIds, now }: ScriptRun,
    approved: readonly string[],
    before: Snapshot,
    after: Snapshot,
  ): void {
    if (this.#isTorn || !before.isConsistent) return;
    if (!after.isConsistent) {
      throw new Violation('the keys of the queue agree', 'they contradict each other');
    }
    for (const [id, { replica }] of before.waiting) {
      if (after.waiting.has(id) || approved.includes(id)) continue;
      if (script === 'withdraw' && requestIds.includes(id)) continue;
      // Put back by a settle that was under way when it was told so, and Redis lost its approval.
      if (this.world.clientOf(id)?.outcome === 'approved') continue;
      const hasLapsed = (before.leases[replica] ?? 0) <= now;
      const isWaiting = this.world.clientOf(id)?.outcome === undefined;
      if (hasLapsed && !(isWaiting && this.world.returnsInTime(replica))) continue;
      throw new Violation('a place is kept', `${id} is gone from the queue`);
    }
  }

  #checkReply(
    { script, requestIds, now }: ScriptRun,
    reply: unknown,
    before: Snapshot,
    isNewWindow: boolean,
    heldBefore: ReadonlySet<string>,
  ): void {
    if (script !== 'release') return;
    const { state } = before;
    const isCurrent = state !== undefined && now < state.start + state.window && !isNewWindow;
    const released = requestIds.filter(
      (id) =>
        heldBefore.has(id) || this.#givenBack.has(id) || (isCurrent && before.requests.has(id)),
    ).length;
    if (reply !== released && !this.#isTorn) {
      const [id = ''] = requestIds;
      throw new Violation('an approval is released once', `${id}: reply ${String(reply)}`);
    }
  }

  /**
   * A waiter can be in time, if nobody leaves and nothing is released. A client that comes too late is told when
   * it could.
   */
  #checkForetoldTurn(
    { script, now, requestIds }: ScriptRun,
    reply: unknown,
    before: Snapshot,
    { state, waiting }: Snapshot,
  ): void {
    const [id = '', ...others] = requestIds;
    const client = this.world.clientOf(id);
    const isSimple = script === 'check' && others.length === 0 && !this.#isTorn;
    // The windows to come are as long as the rules say that begin them.
    const isSureOfLength = this.world.rules.windows.length === 1;
    if (!isSimple || !isSureOfLength || !client?.canWait || !state || now < state.holdUntil) return;
    const verdict = (reply as number[])[3]!;
    const hasJoined = waiting.has(id);
    // One that is sent again keeps the place that it has.
    if (before.waiting.has(id) || (!hasJoined && verdict > TURN_TOO_LATE)) return;
    // As the call found them: it renews the lease of its own replica when somebody joins.
    const living = [...waiting.entries()].filter(
      ([other, { replica }]) => other === id || (before.leases[replica] ?? 0) > now,
    );
    const ahead = living.length - (hasJoined ? 1 : 0);
    const turnMillis = this.#turnMillis(now, state, ahead, client.hits);
    const isHeld = this.#held.length > 0;
    const earliest = Math.min(
      state.start - state.window,
      ...this.#further.now.map(({ start, windowMillis }) => start - windowMillis),
    );
    const wasReleased = state.released > 0 && state.released >= earliest;
    const expectsRelease = client.maxWaitMillis > 0 && (isHeld || wasReleased);
    const isTooLate = turnMillis > client.maxWaitMillis && !expectsRelease;
    if (hasJoined === isTooLate) {
      const why = `${id}, whose turn comes in ${turnMillis} ms`;
      throw new Violation('who waits can be in time', why);
    }
    if (isHeld) return; // A lapse may come sooner or later.
    if (isTooLate && TURN_TOO_LATE - verdict !== turnMillis * 1000) {
      throw new Violation('a turn is foretold', `${id}: ${verdict}, not ${turnMillis} ms`);
    }
  }

  /** Until the turn of a check with `hits` hits behind `ahead` waiters, each of which needs one hit at least. */
  #turnMillis(now: number, state: StoredState, ahead: number, hits: number): number {
    const { start, window, max, approved } = state;
    const all = [
      { end: start + window, window, max, taken: approved, takes: hits },
      ...this.#further.now.map(({ end, taken, ...limit }) => ({
        end,
        window: limit.windowMillis,
        max: limit.maximum,
        taken,
        takes: takes(limit, hits),
      })),
    ];
    const turns = all.flatMap((limit) => {
      const missing =
        ahead + Math.min(limit.takes, limit.max) - Math.max(0, limit.max - limit.taken);
      if (missing <= 0) return [];
      return [limit.end + limit.window * (Math.ceil(missing / limit.max) - 1)];
    });
    const isPaused = now < this.#pausedUntil;
    const roomAt = isPaused ? this.#pausedUntil : Math.min(...all.map(({ end }) => end));
    if (turns.length === 0) return roomAt - now;
    return Math.max(...turns, this.#pausedUntil) - now;
  }

  /** Somebody waits only while a limit has no room for the head. */
  #checkRoomIsUsed({ now, script }: ScriptRun, { state, waiting, leases }: Snapshot): void {
    if (!state || script === 'inspect' || this.#isTorn) return;
    if (state.approved >= state.max || now < state.holdUntil) return;
    if (now < this.#pausedUntil || !this.#further.hasRoom) return;
    // Such an approval takes room from those behind it, which they get with the next call.
    if (this.#isGivenAgain && state.isServing) return;
    for (const [id, { replica }] of waiting) {
      if ((leases[replica] ?? 0) <= now) continue;
      const hits = this.world.clientOf(id)?.hits ?? 1;
      const fitsOwn = state.approved + hits <= state.max || state.approved === 0;
      if (fitsOwn && this.#further.fitsHead(hits))
        throw new Violation('room is given to those who wait', `${id} waits all the same`);
      return;
    }
  }

  /** Where Redis is always there and has lost nothing, nobody waits for others to come back. */
  #checkRecovery(
    { replica, lowestTicket, now }: ScriptRun,
    { before, after: { state }, messages }: Change,
  ): void {
    if (this.world.hasLostMemory) return;
    const granted = this.world.clientOfTicket(lowestTicket);
    const isRemembered =
      granted?.approval?.isForgotten === false &&
      now < this.#rememberedUntil(granted.approval.windowEnd);
    if (messages.includes(MEMORY_LOST) && isRemembered) {
      throw new Violation('an approval is not taken for a loss', `${granted.name} was approved`);
    }
    const isRecovering = state !== undefined && state.holdUntil > 0;
    const begins = isRecovering && !(before.state !== undefined && before.state.holdUntil > 0);
    // For a lease after a step of the clock no caller can know that Redis was up before.
    if (this.world.now < this.#steppedAt + this.world.shape.leaseMillis) return;
    if (begins && this.world.isPunctual(replica)) {
      throw new Violation('a key recovers after a loss only', `${replica} begins a recovery`);
    }
  }

  /** A check is denied, or waits, only if there is no room or others wait. */
  #checkRoomIsTaken(
    { script, now, requestIds }: ScriptRun,
    reply: unknown,
    before: Snapshot,
    { state, waiting, leases }: Snapshot,
  ): void {
    const [id = ''] = requestIds;
    if (script !== 'check' || requestIds.length !== 1 || this.#isTorn || !state) return;
    if (now < state.holdUntil || before.waiting.has(id)) return;
    if (now < this.#pausedUntil) return;
    const hits = this.world.clientOf(id)?.hits ?? 1;
    if ((reply as number[])[3] === APPROVED || state.approved + hits > state.max) return;
    if (!this.#further.fits(hits)) return;
    for (const [other, { replica }] of waiting) {
      if (other !== id && (leases[replica] ?? 0) > now) return;
    }
    throw new Violation('a check is approved if there is room', `${id} is not`);
  }

  /** Nothing lasts longer than it was set for, also after Redis's clock has gone back. */
  #checkTimes({ now, replica }: ScriptRun, before: Snapshot, after: Snapshot): void {
    const { leaseMillis } = this.world.shape;
    // A caller that looks at its own lease sees the step.
    const isShown = (before.leases[replica] ?? 0) > now + leaseMillis;
    const hasLooked = after.leases[replica] !== before.leases[replica];
    checkNothingLastsLonger(
      after,
      now,
      leaseMillis,
      isShown && hasLooked ? new Map() : this.#renewed,
    );
  }

  /** A renewal changes the caller's lease only, and not if Redis may have been down: a recovery comes first. */
  #checkRenewal({ replica, now }: ScriptRun, before: Snapshot, after: Snapshot): void {
    const [was, is] = [before.leases[replica], after.leases[replica]];
    const expected = was === undefined ? before.leases : { ...before.leases, [replica]: is };
    if (!isDeepStrictEqual(after.leases, expected)) {
      throw new Violation('a renewal changes one lease', JSON.stringify(after.leases));
    }
    if (is === was || was === undefined) return;
    this.#renewed.set(replica, is!);
    if (was - LEASE_PART_LEFT * this.world.shape.leaseMillis < now) {
      throw new Violation('a recovery comes before a renewal', `${replica} was silent`);
    }
  }

  /** Until when Redis promises to know of an approval, see lua/lib/past-requests.lua. */
  #rememberedUntil(windowEnd: number): number {
    const { leaseMillis } = this.world.shape;
    const promised = this.world.rules.windows.map((length) =>
      3 * length >= leaseMillis ? 3 * length : 2 * leaseMillis,
    );
    return windowEnd + Math.min(...promised);
  }
}

/** Whether a call has found no such key, or one that was idle for too long. */
function isMadeAgain({ now }: ScriptRun, before: Snapshot, { state }: Snapshot): boolean {
  const was = before.state;
  if (was?.born !== state?.born) return true;
  if (was === undefined) return false;
  // A release can leave a key idle in a window that has just begun. The key is made again in the same millisecond then.
  const isFresh = state !== undefined && state.expires > now;
  if (was.start === state?.start && !isFresh) return false;
  if (now < was.expires || was.holdUntil > now) return false;
  if ((state?.holdAgain ?? 0) > was.holdAgain) return false;
  // Where somebody has removed the holds, the state still counts them.
  if ((was.holds?.firstLapse ?? 0) > now || was.pausedUntil > now) return false;
  if ([...before.holds.values()].some(({ lapsesAt }) => lapsesAt > now)) return false;
  const isWaitedFor = [...before.waiting.values()].some(
    ({ replica }) => (before.leases[replica] ?? 0) > now,
  );
  if (isWaitedFor) return false;
  // The first of two batches of a call can make the key again, and the second begin a recovery: its replica knows of a
  // waiter that was in the queue of the idle key.
  // A boundary of shorter windows from the last boundary on would be no new window.
  const isNewWindow = state?.start === now && ((now - was.start) % was.window) % state.window !== 0;
  if (isNewWindow && state.limitsSince === now) return true;
  const beginsRecovery = state !== undefined && state.holdUntil > now;
  return !(beginsRecovery && before.waiting.size > 0);
}

/** Whether a call has found no key, or one that was idle for too long, and has made no other. */
function isIdle({ state, holds, waiting, leases }: Snapshot, now: number): boolean {
  if (!state) return true;
  if (Math.max(state.expires, state.holdUntil, state.pausedUntil) > now) return false;
  const isHeld = [...holds.values()].some(({ lapsesAt }) => lapsesAt > now);
  return !isHeld && ![...waiting.values()].some(({ replica }) => (leases[replica] ?? 0) > now);
}

/** Whether the script brings the key up to date. */
function opensKey({ script }: ScriptRun): boolean {
  return script !== 'renew' && script !== 'inspect';
}

/** A check that was sent with few names has decided nothing, and is sent again. */
function needsAllNames(reply: unknown): boolean {
  return Array.isArray(reply) && reply[0] === null;
}
