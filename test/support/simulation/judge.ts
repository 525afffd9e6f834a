import { ApprovalsSeen } from './approvals-seen.js';
import { checkDays, checkStale } from './calendars-seen.js';
import type { SimulatedRequest } from './client.js';
import { byNow, checkNothingLastsLonger } from './clock-went-back.js';
import {
  findsNoKey,
  type JudgedCall,
  type JudgedWorld,
  type Loss,
  newlyApproved,
} from './judged-call.js';
import { judgeByModel } from './oracle.js';
import { checkLists } from './lists-seen.js';
import { OwnersSeen } from './owners-seen.js';
import { KeptPlacesSeen } from './kept-places.js';
import { checkLook } from './looks.js';
import { QueueOrder } from './queue-order.js';
import { checkRecovery, checkRenewal } from './recoveries.js';
import { withSaidCalendars } from './said-calendars.js';
import type { ScriptRun } from './script-run.js';
import { ReportsSeen } from './reports-seen.js';
import { idsOf, isIdle, keptMillisOf, type Snapshot } from './snapshot.js';
import type { Change } from './stored-key.js';
import { Violation } from './violation.js';

/** Holds each script call against the model of the rules, and against what has been seen before. */
export class Judge {
  #calls = 0;
  /** Redis has lost a part of what it knew of the key since the key was made. */
  #isTorn = false;
  /** The length of the last pause, and when it ends by the world's time. */
  #pause = { millis: 0, endsAt: 0 };
  readonly #reports: ReportsSeen;
  /** The last script call before Redis's clock went back. */
  steppedAfter = 0;
  /** When Redis's clock went back last, by the world's time. */
  #steppedAt = -Infinity;
  /** Redis's clock has gone back, and no call has opened the key since. */
  #isBehind = false;
  /** When the leases end that a renewal has extended last, by their ids. */
  readonly #renewed = new Map<string, number>();
  readonly #approvals: ApprovalsSeen;
  readonly #order: QueueOrder;
  readonly #owners: OwnersSeen;
  readonly #kept: KeptPlacesSeen;

  constructor(private readonly world: JudgedWorld) {
    this.#approvals = new ApprovalsSeen(world);
    this.#order = new QueueOrder(world);
    this.#owners = new OwnersSeen(world);
    this.#kept = new KeptPlacesSeen(world);
    this.#reports = new ReportsSeen(world);
  }

  /**
   * Redis has lost keys.
   * @param isShown whether what is left shows that others waited, and has them come back in a recovery of their own: a queue
   *   that is lost as a whole does not, and what is lost in a recovery has what is left of that
   */
  memoryLost(requests: Iterable<SimulatedRequest>, lost: Loss, isShown: boolean): void {
    if (lost !== 'queue') this.approvalsLost(requests);
    this.#isTorn = lost !== 'everything';
    this.#order.memoryLost(lost === 'queue' && isShown);
    if (lost === 'everything') this.#approvals.memoryLost();
  }

  /** Redis has lost what it knew of the approvals of these requests, and a part of the key. */
  approvalsLost(requests: Iterable<SimulatedRequest>): void {
    for (const { approval } of requests) if (approval) approval.isForgotten = true;
    this.#isTorn = true;
  }

  /**
   * Redis's clock has gone back. What Redis promises to remember for some time is remembered for that time by the world's
   * time.
   */
  clockWentBack(requests: Iterable<SimulatedRequest>, millis: number): void {
    this.#isBehind = true;
    this.steppedAfter = this.#calls;
    this.#steppedAt = this.world.now;
    for (const request of requests) {
      const { approval } = request;
      if (approval) {
        request.approval = { ...approval, windowEnd: approval.windowEnd - millis };
      }
    }
  }

  /** @param reply what the script replied */
  judge(run: ScriptRun, reply: unknown, change: Change): void {
    this.#calls += 1;
    if (checkStale(run, reply, change)) return;
    if (run.script === 'status') {
      checkLook(run, reply, change);
      return;
    }
    const { after, messages } = change;
    const isOpened = run.script !== 'renew' && !needsAllNames(reply);
    const stored = this.#found(run, change, isOpened);
    const beginsKey = findsNoKey(run, stored, after);
    if (isOpened && stored.state && after.state && beginsKey) this.#isTorn = false;
    const approved = newlyApproved(run, stored, after, beginsKey);
    const call: JudgedCall = {
      ...{ number: this.#calls, run, reply, stored, after, messages, approved, beginsKey },
      isTorn: this.#isTorn,
    };
    // Of a torn key, the parts contradict each other until it is begun again.
    if (isOpened && !this.#isTorn && stored.isConsistent && after.isConsistent) judgeByModel(call);
    this.#owners.judge(call);
    if (isOpened) this.#approvals.judge(call);
    if (isOpened) this.#reports.judge(call);
    if (isOpened && !this.#isTorn) checkDays(call);
    this.#kept.judge(call, this.#steppedAt > -Infinity);
    this.#order.judge(call);
    checkLists(call, this.world);
    checkRecovery(call, this.world, this.#steppedAt, (windowEnd) =>
      this.#approvals.rememberedUntil(windowEnd),
    );
    if (run.script === 'renew') this.#checkRenewal(call);
    if (!isOpened) return;
    for (const [id, { lapsesAt }] of after.holds) {
      const request = this.world.requestOf(id);
      if (request) request.heldUntil = lapsesAt;
    }
    if (!isIdle(after, run.now)) this.#checkTimes(call);
  }

  /**
   * What a call has to go by. What has expired counts as well, since it must have been idle, or over; but not if the
   * clock has gone back since, so that it might not be over any more.
   */
  #found(run: ScriptRun, { left, before, after }: Change, isOpened: boolean): Snapshot {
    if (!isOpened) return before;
    // A record that has expired does not tell of its request any more.
    const { records, ends } = before;
    const said = withSaidCalendars(this.#isBehind ? before : { ...left, records, ends }, run);
    const found = byNow(said, run.now);
    const isFirst = this.#isBehind;
    this.#isBehind = false;
    const { state } = found;
    if (run.script === 'pause') {
      const millis = Number(run.own[0]);
      this.#pause = { millis, endsAt: this.world.now + millis };
    } else if (isFirst && state && state.pausedUntil > run.now && after.state) {
      const pausedUntil = this.#pauseByNow(run.now, state.pausedUntil, after.state.pausedUntil);
      return { ...found, state: { ...state, pausedUntil } };
    }
    return found;
  }

  /**
   * Until when a pause lasts that was set before the clock went back: no longer than its length from now on, and no
   * shorter than by the world's time. Redis knows the step only as far as the times show it that it has.
   */
  #pauseByNow(now: number, before: number, after: number): number {
    const earliest = now + Math.max(1, this.#pause.endsAt - this.world.now);
    const latest = Math.min(before, now + this.#pause.millis);
    if (after >= earliest && after <= latest) return after;
    const detail = `${after - now} ms, not ${earliest - now} to ${latest - now}`;
    throw new Violation('a pause is as long as asked for after a step of the clock', detail);
  }

  #checkRenewal(call: JudgedCall): void {
    const { run, after } = call;
    if (!checkRenewal(call, this.world.shape.leaseMillis)) return;
    for (const id of idsOf(after, run.replica)) this.#renewed.set(id, after.leases[id]!);
  }

  /** Nothing lasts longer than it was set for, also after Redis's clock has gone back. */
  #checkTimes({ run: { now, replica }, stored, after }: JudgedCall): void {
    const { leaseMillis } = this.world.shape;
    // A caller that looks at its own lease sees the step.
    const ids = idsOf(stored, replica);
    const isShown = ids.some((id) => stored.leases[id]! > now + leaseMillis + keptMillisOf(id));
    const hasLooked = ids.some((id) => after.leases[id] !== stored.leases[id]);
    const renewed = isShown && hasLooked ? new Map<string, number>() : this.#renewed;
    checkNothingLastsLonger(after, now, leaseMillis, renewed);
  }
}

/** A check that was sent with few names has decided nothing, and is sent again. */
function needsAllNames(reply: unknown): boolean {
  return Array.isArray(reply) && reply.length > 0 && reply.every((part) => part === null);
}
