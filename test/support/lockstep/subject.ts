import { randomUUID } from 'node:crypto';

import { UnavailableError } from '../../../src/limiter/errors.js';
import { handleOf } from '../../../src/limiter/holdings.js';
import type { PeekRequest } from '../../../src/limiter/limiter.js';
import type { HarnessFactory, LimiterHarness } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { uniqueKey } from '../unique-key.js';
import { outcomeOf, settled, withoutHandles, withoutNames } from './comparable.js';
import { isOpen, SentChecks } from './sent-checks.js';
import { KEYS, NAMES, type Step, type Terms } from './step.js';

const LIMITS: DeclaredLimits = { windowMillis: 100, maxRequests: 2, maxRequestsInQueue: 3 };
const HANDED_OVER = new UnavailableError('handed_over').message;
/** Fewer than wait in some sequences. */
const MOST_QUEUED = 3;
/** Lower than some maxima. */
const BOUNDS = { maxIdsPerKey: 3, maxHoldsPerKey: 2, maxGroupsPerKey: 2 };

/** One limiter under a sequence of steps, and its visible state. */
export class Subject {
  readonly #keys = Array.from({ length: KEYS }, uniqueKey);
  readonly #limits = Array.from({ length: KEYS }, () => LIMITS);
  readonly #ids = new ChosenIds();
  readonly #checks = new SentChecks();
  /** When checks may be told their places, and when places may end. */
  readonly #ends = new Set<number>();
  #now = 0;
  #isReplaced = false;

  private constructor(private readonly harness: LimiterHarness) {}

  static async create(createHarness: HarnessFactory): Promise<Subject> {
    const limitsOf = (key: string): DeclaredLimits => subject.limitsOf(key);
    const subject: Subject = new Subject(await createHarness(limitsOf, BOUNDS));
    return subject;
  }

  limitsOf(key: string): DeclaredLimits {
    return this.#limits[this.#keys.indexOf(key)]!;
  }

  close(): Promise<void> {
    return this.harness.close();
  }

  /**
   * Whether a place or a check has ended at a moment at which something else was due. Which comes first is nobody's promise,
   * so that the limiters may differ from then on. Or whether a key may remember too many requests: one limiter fails more.
   */
  get isAmbiguous(): boolean {
    const hasTie = this.harness.ties().some((at) => this.#ends.has(at));
    return hasTie || Math.max(...this.#ids.counts) > 3 * BOUNDS.maxIdsPerKey;
  }

  /** Returns the answer of a step that has one of its own. */
  async run(step: Step): Promise<unknown> {
    const answer = await this.#run(step);
    await this.harness.quiet();
    return answer;
  }

  async #run(step: Step): Promise<unknown> {
    const { limiter } = this.harness;
    switch (step.kind) {
      case 'advance':
        this.#noteUses();
        await this.harness.advance(step.millis);
        this.#now += step.millis;
        return undefined;
      case 'limit':
        this.#limits[step.key] = step.limits;
        return this.settle();
      case 'pause':
        return limiter
          .ask('pause', {
            key: this.#keys[step.key]!,
            millis: step.millis,
            canShorten: step.canShorten,
            group: step.group,
          })
          .catch((error: unknown) => error);
      case 'refund':
        return limiter.ask('refund', {
          key: this.#keys[step.key]!,
          hits: step.hits,
          list: step.list,
        });
      case 'report':
        return limiter.ask('reportRemaining', { key: this.#keys[step.key]!, ...step.report });
      case 'check': {
        const { key, named, isNew, terms } = step;
        this.#noteUses();
        const isOver = (id: string): boolean => isNew && !this.#checks.hasOpen(id);
        const requestId =
          named === undefined ? undefined : this.#ids.use(this.#now, key, named, isOver);
        this.#send(this.#keys[key]!, requestId, terms);
        return undefined;
      }
      case 'return':
        this.#comeBack(step.which, step.changes);
        return undefined;
      case 'peek': {
        const { hits, holdMillis, list, isChecked } = step;
        return this.#peek({ key: this.#keys[step.key]!, hits, holdMillis, list }, isChecked);
      }
      case 'status':
        return this.#statusOf(step.which);
      case 'disconnect': {
        const sent = this.#checks.undecided.at(-1 - step.which);
        this.#noteEnd(sent?.terms.keepMillis);
        sent?.check.disconnect();
        return undefined;
      }
      case 'handOver':
        return this.#handOver();
      default:
        return this.#change(step);
    }
  }

  /** Changes what an earlier check has got. */
  async #change(
    step: Extract<Step, { readonly kind: 'release' | 'giveBack' | 'endHold' | 'amend' }>,
  ): Promise<unknown> {
    const { limiter } = this.harness;
    const withOpen = step.kind === 'release' || step.kind === 'endHold';
    const chosen = this.#checks.requests(withOpen).at(-1 - step.which);
    if (!chosen) return undefined;
    const { key, requestId, claim = requestId } = chosen;
    switch (step.kind) {
      case 'release':
        return limiter.ask('release', { key, requestId });
      case 'giveBack':
        void chosen.limiter.ask('giveBack', { key, claim });
        return undefined;
      case 'endHold':
        return limiter.ask('endHold', { key, handle: handleOf(key, requestId) });
      case 'amend':
        return limiter.ask('amend', { key, requestId, ...step.amendment });
    }
  }

  #send(key: string, requestId: string | undefined, asked: Terms): void {
    // A process that takes the place of another does not have all the places that the embedded limiter has.
    const noPlace = asked.noPlace && !this.#isReplaced;
    const { limiter } = this.harness;
    const { terms } = this.#checks.send(limiter, key, requestId, { ...asked, noPlace });
    const { answerMillis, keepMillis } = terms;
    if (answerMillis === undefined) return;
    this.#noteEnd(answerMillis);
    this.#noteEnd(answerMillis + (keepMillis ?? 0));
  }

  #noteEnd(millis: number | undefined): void {
    if (millis !== undefined) this.#ends.add(this.harness.now() + millis);
  }

  #comeBack(which: number, changes: Partial<Terms>): void {
    this.#noteUses();
    const known = this.#checks.owners.filter(({ requestId }) =>
      this.#ids.isRemembered(this.#now, requestId),
    );
    // Those that wait first, since they are few.
    const earlier = known.sort((a, b) => Number(isOpen(a)) - Number(isOpen(b))).at(-1 - which);
    if (!earlier) return;
    const { key, requestId, terms } = earlier;
    this.#send(key, requestId, { ...terms, ...changes });
  }

  /** The embedded limiter has no other process to hand places over to: there the callers lose their connections. */
  async #handOver(): Promise<void> {
    this.#noteUses();
    this.#isReplaced = true;
    const leaving = this.#checks.undecided.filter(({ terms }) => terms.keepMillis !== undefined);
    const returning = this.#checks.open.filter(({ terms }) => terms.keepMillis !== undefined);
    if (this.harness.replace) await this.harness.replace();
    else for (const { check } of leaving) check.disconnect();
    await this.harness.quiet();
    for (const sent of leaving) {
      const { settled, failure } = sent.check;
      sent.isHandedOver = settled?.outcome === 'waiting' || failure?.message === HANDED_OVER;
    }
    for (const { key, requestId, terms } of returning) {
      this.#send(key, requestId, terms);
      await this.harness.quiet();
    }
  }

  /** The records of requests that are open may change at any moment. */
  #noteUses(): void {
    for (const { requestId } of this.#checks.open) this.#ids.noteUse(this.#now, requestId);
  }

  /** Returns what a peek says that changes nothing. @param isChecked a check gets the same after it */
  async #peek(request: PeekRequest, isChecked: boolean): Promise<unknown> {
    const { limiter } = this.harness;
    const before = await this.states();
    const said = await settled(limiter.ask('peek', request));
    expect(await this.states()).toEqual(before);
    if (!isChecked) return said;
    const got = await settled(limiter.check({ ...request, canWait: false }));
    await this.harness.quiet();
    expect(outcomeOf(said)).toEqual(outcomeOf(got));
    return said;
  }

  /** Returns what a request is by a question that changes nothing. */
  async #statusOf(which: number): Promise<unknown> {
    this.#noteUses();
    const chosen = this.#checks
      .requests(true)
      .filter(({ claim, requestId }) => !claim || this.#ids.isRemembered(this.#now, requestId))
      .at(-1 - which);
    if (!chosen) return undefined;
    const before = await this.states();
    const status = await this.harness.limiter.ask('statusOf', {
      key: chosen.key,
      requestId: chosen.requestId,
    });
    expect(await this.states()).toEqual(before);
    return status;
  }

  /** Serves the waiters. Limits that wait for the end of a window come into force if it is over. */
  async settle(): Promise<void> {
    for (const limiter of this.#limiters) limiter.limitsChanged();
    await this.harness.quiet();
  }

  get #limiters() {
    return new Set([this.harness.limiter, ...this.#checks.limiters]);
  }

  /** What has become of each check. */
  outcomes(): unknown[] {
    return this.#checks.outcomes();
  }

  /** What can be seen of each key, in short and in detail, and of each request, and how many wait here. */
  async states(): Promise<unknown> {
    const { limiter } = this.harness;
    const states = this.#keys.map(async (key, index) => {
      const ids = this.#ids.remembered(this.#now, index);
      // At once, which takes Redis one turn.
      const [state, detail, holdings, requests] = await Promise.all([
        limiter.ask('inspect', { key }),
        limiter.ask('examine', { key, mostQueued: MOST_QUEUED }),
        limiter.ask('holdings', { key }),
        Promise.all(ids.map((id) => limiter.ask('statusOf', { key, requestId: id }))),
      ]);
      return {
        state: state && { ...state, key: undefined },
        detail: detail && withoutNames(detail),
        holdings: withoutHandles(holdings),
        requests,
      };
    });
    const waitingHere = [...this.#limiters].reduce((sum, limiter) => sum + limiter.waiting(), 0);
    return { keys: await Promise.all(states), waitingHere };
  }
}

/** A record may be forgotten this long after its last change: three of the shortest windows. */
const REMEMBERED_MILLIS = 90;

/** The request ids that callers have chosen. An id is replaced where the limiters may forget it at different times. */
class ChosenIds {
  /** Of each key and each of its names, and when its record may have changed last. */
  readonly #ids = Array.from({ length: KEYS * NAMES }, () => ({ id: randomUUID(), usedAt: 0 }));

  /** How many ids each key has had. */
  readonly counts = Array.from({ length: KEYS }, () => 0);

  /** The id for a check that is sent now. @param isOver whether it is to be replaced in any case */
  use(now: number, key: number, name: number, isOver: (id: string) => boolean): string {
    const chosen = this.#ids[key * NAMES + name]!;
    const isForgotten = now >= chosen.usedAt + REMEMBERED_MILLIS;
    if (isForgotten || isOver(chosen.id)) {
      chosen.id = randomUUID();
      this.counts[key]! += 1;
      // A later check with the id may change nothing, as one with other hits.
      chosen.usedAt = now;
    }
    return chosen.id;
  }

  /** The record of an id may change, or has changed. */
  noteUse(now: number, id: string): void {
    const chosen = this.#ids.find((each) => each.id === id);
    if (chosen) chosen.usedAt = now;
  }

  /** Whether both limiters know what has become of an id. */
  isRemembered(now: number, id: string): boolean {
    const chosen = this.#ids.find((each) => each.id === id);
    return chosen !== undefined && now < chosen.usedAt + REMEMBERED_MILLIS;
  }

  /** The ids of a key of which both limiters know what has become. */
  remembered(now: number, key: number): string[] {
    const ofKey = this.#ids.slice(key * NAMES, (key + 1) * NAMES);
    return ofKey.map(({ id }) => id).filter((id) => this.isRemembered(now, id));
  }
}
