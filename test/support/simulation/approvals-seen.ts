import type { Algorithm } from '../../../src/limiter/kinds/kinds.js';
import { capacityOf, isSameAlgorithm } from '../../../src/limiter/limits.js';
import { luaNumber } from '../lua-constants.js';
import { type StoredState, windowEnd } from '../stored-state.js';
import type { SimulatedClient } from './client.js';
import { claimedBy, type JudgedCall, type JudgedWorld, withdrawnBy } from './judged-call.js';
import { isIdle, type Snapshot, Violation } from './snapshot.js';
import { grantedIn, requestsKnown } from './stored-requests.js';

/** While waiters are served, a bucket may have drained below 0 by what drains in this time. */
const CREDIT_MILLIS = luaNumber('limits/token-bucket', 'CREDIT_MICROS') / 1000;

/**
 * What was approved and given back, over all calls. It holds also if Redis loses memory: nobody is approved twice, or
 * beyond a maximum, unless Redis has lost what it knew of the approvals.
 */
export class ApprovalsSeen {
  /** Of the current window or period: the highest maximum that it has had, the hits of each approval, and those refunded. */
  #window = newWindow(0);

  constructor(private readonly world: JudgedWorld) {}

  memoryLost(): void {
    this.#window = newWindow(0);
  }

  judge(call: JudgedCall): void {
    const { run, stored, after, approved, beginsKey } = call;
    this.#forget(call);
    this.#givenBack(call);
    const { state } = after;
    if (run.script === 'amend' && run.own[1] !== '') {
      const request = this.world.requestOf(run.requestIds[0]!);
      if (request) request.isAmended = true;
    }
    for (const id of approved) this.#approved(id, call);
    const claimed = claimedBy(run, stored, after);
    for (const id of claimed) this.#claimed(id, call);
    if (!state) return;
    this.#checkUnit(call);
    const isSame = !beginsKey && goesOn(stored.state, state) && !isIdle(after, run.now);
    // Held approvals stay, although the maximum may be lower in this window.
    const highest = hitsOf(heldIn(stored, run.now));
    if (!isSame) this.#window = newWindow(highest);
    if (run.script === 'refund') this.#window.refunded += call.reply as number;
    for (const id of approved) this.#window.approved.delete(id);
    for (const [id, hits] of after.requests) {
      // Other limits have approvals of earlier periods.
      // One that is held counts as such. An earlier approval with its id may still be stored, and is over.
      const isNew = (approved.includes(id) && !after.holds.has(id)) || claimed.includes(id);
      const isOfPeriod = isNew || this.#window.approved.has(id);
      if (!state.stored || isOfPeriod) this.#window.approved.set(id, hits);
    }
    this.#checkMaximum(call);
    if (state.report) this.#remembersUntil(windowEnd(state), after);
  }

  /** The window that has these approvals ends later, by a report. */
  #remembersUntil(end: number, { requests }: Snapshot): void {
    for (const id of requests.keys()) {
      const request = this.world.requestOf(id);
      if (request?.approval) request.approval = { ...request.approval, windowEnd: end };
    }
  }

  /** Redis does not remember holds that have lapsed, nor approvals for ever. */
  #forget({ run: { script, requestIds, now }, stored }: JudgedCall): void {
    for (const [id, { lapsesAt }] of stored.holds) {
      const approval = this.world.requestOf(id)?.approval;
      if (!approval || lapsesAt > now) continue;
      approval.isForgotten = true;
      // Nobody has got it, so it counts in no limit.
      if (grantedIn(stored).has(id)) this.#window.approved.delete(id);
    }
    if (script !== 'check') return;
    for (const id of requestIds) {
      const approval = this.world.requestOf(id)?.approval;
      if (stored.holds.has(id) || !approval) continue;
      if (now >= this.rememberedUntil(approval.windowEnd)) approval.isForgotten = true;
    }
  }

  /** Takes note of what was withdrawn or released. */
  #givenBack(call: JudgedCall): void {
    const { number, run, stored, after } = call;
    if (run.script !== 'withdraw' && run.script !== 'release') return;
    const withdrawn = withdrawnBy(call);
    for (const id of run.requestIds) {
      const request = this.world.requestOf(id);
      if (!request) continue;
      if (run.script === 'withdraw' && !withdrawn.has(id)) {
        // An outdated claim changes nothing, and neither does one of a request that is forgotten.
        if (!requestsKnown(stored).has(id) && !counts(stored, id, run.now)) {
          request.withdrawnBy = number;
        }
        continue;
      }
      // A release finds no place of a key that Redis has lost.
      if (run.script === 'release' && !stored.state && stored.waiting.has(id)) continue;
      request.withdrawnBy = number;
      // A settle under way when its waiter is told, with a loss of memory in between, puts it back although
      // nobody needs it. The release is a 404 then, and may serve the place: docs/reliability.md.
      const isServedByRelease =
        run.script === 'release' && stored.waiting.has(id) && !withdrawn.has(id);
      // What does not count any more stays in a limit that is no fixed window.
      const isCounted = after.requests.has(id) && !after.state?.stored;
      const isStored = isCounted || after.holds.has(id);
      const isApproved = after.state !== undefined && isStored && !isServedByRelease;
      const isKnown = request.isNamed && withdrawn.has(id) && requestsKnown(after).has(id);
      if (isApproved || isKnown || (withdrawn.has(id) && after.waiting.has(id))) {
        throw new Violation('who is withdrawn has left Redis', `${id} is still there`);
      }
      const wasHeld = (stored.holds.get(id)?.lapsesAt ?? 0) > run.now && !isServedByRelease;
      const limits = [stored.requests, ...stored.limits.values()];
      if (wasHeld || limits.some((limit) => limit.has(id))) request.releasedBy = number;
      this.#window.approved.delete(id);
      if (request.isNamed && withdrawn.has(id)) {
        // Its caller may ask with the id as with a new one.
        request.approval = undefined;
        request.releasedBy = undefined;
        continue;
      }
      if (!wasHeld || !request.approval || !after.state) continue;
      // From now on, its id is remembered as one of the window.
      request.approval = { ...request.approval, windowEnd: windowEnd(after.state) };
    }
  }

  #approved(id: string, { number, run, after }: JudgedCall): void {
    const { state, requests, holds } = after;
    const isGranted = grantedIn(after).has(id);
    const request = this.world.requestOf(id);
    if (!request) throw new Violation('only those who ask are approved', id);
    const { approval, checks } = request;
    const { hits, millis } = holds.get(id) ?? { hits: requests.get(id), millis: undefined };
    const isAsked = (check: SimulatedClient): boolean =>
      hits === check.askedHits && millis === (isGranted ? check.keepMillis : check.askedHold);
    if (!checks.some(isAsked)) {
      throw new Violation('an approval is what was asked for', `${id}: ${hits} hits, ${millis} ms`);
    }
    request.isAmended = false;
    if (approval && !approval.isForgotten && run.now < this.rememberedUntil(approval.windowEnd)) {
      const released = request.releasedBy === undefined ? '' : ', and released,';
      throw new Violation('nobody is approved twice', `${id}${released} is approved again`);
    }
    request.approval = {
      windowEnd: windowEnd(state!),
      call: number,
      isForgotten: false,
    };
    request.releasedBy = undefined;
  }

  /** The caller of an approval that was held for it has got it: it counts from now on as was asked for. */
  #claimed(id: string, { run, stored, after }: JudgedCall): void {
    const request = this.world.requestOf(id)!;
    const { lapsesAt, millis } = after.holds.get(id) ?? { lapsesAt: Infinity, millis: undefined };
    const { holdMillis } = grantedIn(stored).get(id)!;
    if (millis !== holdMillis || (holdMillis !== undefined && lapsesAt !== run.now + holdMillis)) {
      const detail = `${id}: ${millis} ms, not ${holdMillis}`;
      throw new Violation('an approval is held from when its caller gets it', detail);
    }
    request.heldUntil = lapsesAt;
    if (request.approval && after.state) {
      request.approval = { ...request.approval, windowEnd: windowEnd(after.state) };
    }
  }

  /** The length and the maximum of windows are those of the same rules, also in a key that replicas restore. */
  #checkUnit({ run, after }: JudgedCall): void {
    const { window, max, overridden } = after.state!;
    const { rules } = this.world;
    if (!rules.windows.includes(window)) {
      throw new Violation('a window is as long as rules say', `${window} ms by ${run.script}`);
    }
    if (overridden.includes('max') || rules.isOfRequest(window) || rules.hasUnit(window, max))
      return;
    throw new Violation('a maximum comes with its window', `${max} in ${window} ms`);
  }

  #checkMaximum({ run, stored, after, approved }: JudgedCall): void {
    // A waiter from before a loss brings the maximum of that time back.
    const ofCall = [after.state!, stored.state].flatMap((state) => state?.max ?? []);
    for (const { overrides, rules } of run.batches) {
      ofCall.push(overrides.maxRequests ?? 0, rules.limits[0].maximum);
    }
    const { algorithm, window } = after.state!;
    const maximum = Math.max(...ofCall, run.knownMaximum ?? 0);
    const maximumOfCall = mostInPeriod(algorithm, maximum, window);
    this.#window.highest = Math.max(this.#window.highest, maximumOfCall);
    const isBucket = algorithm.name === 'token_bucket';
    const held = isBucket ? new Map<string, number>() : heldIn(after, run.now);
    const ids = new Map([...this.#window.approved, ...held]);
    const isAmended = [...ids.keys()].some((id) => this.world.requestOf(id)?.isAmended);
    const most = held.size > 0 && approved.length > 0 ? maximumOfCall : this.#window.highest;
    const counted = hitsOf(this.#window.approved);
    // An approval may be released whose hits were refunded.
    this.#window.refunded = Math.min(this.#window.refunded, counted);
    const count = counted - this.#window.refunded + hitsOf(held);
    // An empty bucket approves a waiter with more hits than a burst that was lowered since.
    const aboveBurst = Math.max(0, ...ids.values()) - capacityOf({ algorithm, maximum });
    const alone = isBucket ? Math.max(0, aboveBurst) : 0;
    // More hits than a check asked for may exceed it, and one that needs more than a maximum, which was lowered since,
    // gets a window for itself, in which nothing else counts.
    const isAlone = count <= Math.max(0, ...ids.values());
    if (count > most + alone && !isAlone && !isAmended) {
      throw new Violation('no more than the maximum', `${count} of ${most + alone} in a window`);
    }
  }

  /** Until when Redis promises to know of an approval, see lua/lib/past-requests.lua. */
  rememberedUntil(windowEnd: number): number {
    const { leaseMillis } = this.world.shape;
    const promised = [...this.world.rules.threeWindows].map(([length, three]) =>
      3 * length >= leaseMillis ? three : 2 * leaseMillis,
    );
    return windowEnd + Math.min(...promised);
  }
}

function newWindow(highest: number) {
  return { highest, approved: new Map<string, number>(), refunded: 0 };
}

/** Whether an approval is held, or counts in a fixed window. */
function counts({ requests, holds, state }: Snapshot, id: string, now: number): boolean {
  const isHeld = (holds.get(id)?.lapsesAt ?? 0) > now;
  return (
    isHeld || (state !== undefined && !state.stored && now < windowEnd(state) && requests.has(id))
  );
}

/** Whether the window or period is the same, and of the same limit. */
function goesOn(before: StoredState | undefined, state: StoredState): boolean {
  if (before?.start !== state.start || !isSameAlgorithm(before, state)) return false;
  return !state.stored || before.window === state.window;
}

/** How much may be approved in a window, or in a period of that length. */
function mostInPeriod(algorithm: Algorithm, maximum: number, windowMillis: number): number {
  if (algorithm.name !== 'token_bucket') return maximum;
  const credit = Math.ceil((CREDIT_MILLIS * maximum) / windowMillis);
  return capacityOf({ algorithm, maximum }) + maximum + credit;
}

function heldIn({ holds }: Snapshot, now: number): ReadonlyMap<string, number> {
  const held = [...holds].filter(([, { lapsesAt }]) => lapsesAt > now);
  return new Map(held.map(([id, { hits }]) => [id, hits]));
}

function hitsOf(ids: ReadonlyMap<string, number>): number {
  return [...ids.values()].reduce((sum, hits) => sum + hits, 0);
}
