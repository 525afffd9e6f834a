import { StoreUnavailableError } from '../../../src/limiter/errors.js';
import type { Call } from '../../../src/redis/availability/call-guard.js';

/** `STORE_TIMEOUT_MILLIS` by default. */
export const CALL_LIMIT_MILLIS = 500;
/** Failures in a row after which Redis is not asked any more until it is known to be back. */
const FAILURES_TO_OPEN = 3;

interface Request {
  readonly label: string;
  readonly sentAt: number;
  readonly isScript: boolean;
  readonly isRepeatable: boolean;
  readonly send: (attempt: number) => Promise<unknown>;
  /** Redis's time as the caller knew it when the last attempt was sent. */
  knownTime: number;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
  attempt: number;
  mayHaveRun: boolean;
  /** Its caller has been told that it failed; it may run yet. */
  isGivenUp: boolean;
  answer?: { readonly reply: unknown } | { readonly error: unknown };
}

/**
 * What a replica has asked Redis, on one connection: it runs in the order in which it was sent, and is answered
 * in that order. Each request has one of the fates that the product's CallGuard can give it.
 */
export class Connection {
  #sent: Request[] = [];
  #answered: Request[] = [];
  #failures = 0;
  #isOpen = false;

  /** Redis's time as the replica knew it when the call was sent that runs. */
  knownTime = 0;

  /** @param timeOf Redis's time as the replica knows it */
  constructor(
    private readonly now: () => number,
    private readonly timeOf: () => number,
  ) {}

  /** Redis is known to be down here. */
  get isBroken(): boolean {
    return this.#isOpen;
  }

  get firstSent(): string | undefined {
    return describe(this.#sent[0]);
  }

  get firstAnswered(): string | undefined {
    return describe(this.#answered[0]);
  }

  /** When a caller has to be told that there is no answer. */
  get nextLimitAt(): number {
    const waiting = [...this.#sent, ...this.#answered].filter(
      ({ isScript, isGivenUp }) => isScript && !isGivenUp,
    );
    return Math.min(...waiting.map(({ sentAt }) => sentAt + CALL_LIMIT_MILLIS));
  }

  /** As the product's CallGuard. */
  run<Reply>(call: Call<Reply>): Promise<Reply> {
    if (this.#isOpen) return Promise.reject(new StoreUnavailableError());
    return this.#ask(call.script, call.isRepeatable, true, (attempt) =>
      call.send(attempt, () => true),
    );
  }

  /** Asks for something that is no script: it fails with the connection, and is not sent again. */
  ask<Reply>(label: string, send: () => Reply): Promise<Reply> {
    return this.#ask(label, false, false, () => Promise.resolve(send()));
  }

  async runFirst(): Promise<boolean> {
    const request = this.#sent.shift();
    if (!request) return false;
    this.knownTime = request.knownTime;
    try {
      request.answer = { reply: await request.send(request.attempt) };
    } catch (error) {
      request.answer = { error };
    }
    if (!request.isGivenUp) this.#answered.push(request);
    return true;
  }

  answerFirst(): boolean {
    const request = this.#answered.shift();
    if (!request?.answer) return false;
    this.#failures = 0;
    if ('error' in request.answer) request.reject(request.answer.error);
    else request.resolve(request.answer.reply);
    return true;
  }

  /** The first that was sent never arrives. */
  loseFirst(): boolean {
    const request = this.#sent.shift();
    if (request) this.#outcomeIsUnknown(request);
    return request !== undefined;
  }

  /** The first answer never arrives. */
  loseAnswer(): boolean {
    const request = this.#answered.shift();
    if (request) this.#outcomeIsUnknown(request);
    return request !== undefined;
  }

  /** The first that was sent is refused, and has not run. */
  refuseFirst(): boolean {
    const request = this.#sent.shift();
    if (request && !request.isGivenUp) this.#fail(request);
    return request !== undefined;
  }

  /** Callers of what has taken too long are told so; what was sent may run yet. */
  giveUpLate(): boolean {
    const isLate = (request: Request): boolean =>
      request.isScript && !request.isGivenUp && request.sentAt + CALL_LIMIT_MILLIS <= this.now();
    const late = [...this.#sent, ...this.#answered].filter(isLate);
    this.#answered = this.#answered.filter((request) => !late.includes(request));
    for (const request of late) {
      request.isGivenUp = true;
      request.mayHaveRun = true;
      this.#fail(request);
    }
    return late.length > 0;
  }

  /** Its replica is dead: nothing that it has sent arrives any more. */
  close(): void {
    this.#sent = [];
    this.#answered = [];
  }

  /** Redis is known to be back. */
  mend(): void {
    this.#isOpen = false;
    this.#failures = 0;
  }

  #ask<Reply>(
    label: string,
    isRepeatable: boolean,
    isScript: boolean,
    send: (attempt: number) => Promise<unknown>,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#sent.push({
        label,
        sentAt: this.now(),
        knownTime: this.timeOf(),
        isScript,
        isRepeatable,
        send,
        resolve: resolve as (reply: unknown) => void,
        reject,
        attempt: 1,
        mayHaveRun: false,
        isGivenUp: false,
      });
    });
  }

  #outcomeIsUnknown(request: Request): void {
    if (request.isGivenUp) return;
    request.mayHaveRun = true;
    delete request.answer;
    if (!request.isRepeatable || this.now() >= request.sentAt + CALL_LIMIT_MILLIS) {
      this.#fail(request);
      return;
    }
    request.attempt += 1;
    request.knownTime = this.timeOf();
    this.#sent.push(request);
  }

  #fail(request: Request): void {
    const { mayHaveRun } = request;
    if (!request.isScript) {
      request.reject(new Error('the connection is closed'));
      return;
    }
    this.#failures += 1;
    if (this.#failures >= FAILURES_TO_OPEN) this.#isOpen = true;
    request.reject(new StoreUnavailableError({ mayHaveRun }));
  }
}

function describe(request: Request | undefined): string | undefined {
  if (!request) return undefined;
  return request.attempt === 1 ? request.label : `${request.label} (again)`;
}
