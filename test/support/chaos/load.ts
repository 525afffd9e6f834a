import type { OutgoingHttpHeaders } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

import { begin, type PendingRequest, ratePath } from '../http-client.js';
import type { Fleet } from './fleet.js';
import type { Entry, Ledger, RequestKind } from './ledger.js';
import { KEYS } from './limits.js';
import type { Random } from './random.js';

/** How many clients of each sort there are. Each has at most one request under way. */
const CLIENTS = { checkers: 5, waiters: 40, disconnecters: 8, releasers: 6 };
const WAITED_KEYS = [...KEYS.queued, ...KEYS.released];
/** A client does not knock again at once where nobody opens. */
const PAUSE_AFTER_CUT_MILLIS = 50;

interface LoadParts {
  readonly fleet: Pick<Fleet, 'places' | 'urlOf'>;
  readonly ledger: Ledger;
  readonly random: Random;
  /** Of each request, as of now. */
  readonly headers?: () => OutgoingHttpHeaders;
}

type Target = Pick<Entry, 'key' | 'replica' | 'limitMillis'>;

/**
 * Clients that ask for permission, wait for it, disconnect, and release approvals. The seed alone decides
 * what each of them does. The speed of its answers decides when. Nothing is asked twice.
 */
export class Load {
  readonly #clients: Promise<void>[];
  #isOver = false;

  constructor(private readonly parts: LoadParts) {
    const several = (count: number, name: string, act: (random: Random) => Promise<void>) =>
      Array.from({ length: count }, (_, i) => this.#repeat(parts.random.fork(`${name} ${i}`), act));
    this.#clients = [
      ...several(CLIENTS.checkers, 'checker', (random) => this.#check(random)),
      ...several(CLIENTS.waiters, 'waiter', (random) => this.#wait(random)),
      ...several(CLIENTS.disconnecters, 'disconnecter', (random) =>
        this.#waitAndDisconnect(random),
      ),
      ...several(CLIENTS.releasers, 'releaser', (random) => this.#holdAndRelease(random)),
    ];
  }

  /** Asks nothing more, and resolves when every client has its answer. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async #repeat(random: Random, act: (random: Random) => Promise<void>): Promise<void> {
    while (!this.#isOver) await act(random);
  }

  async #check(random: Random): Promise<void> {
    const target = this.#target(random, random.chance(0.1) ? WAITED_KEYS : KEYS.counted);
    await delay(random.whole(10, 60));
    await this.#request('check', target);
  }

  async #wait(random: Random): Promise<void> {
    const target = this.#target(random, WAITED_KEYS);
    const limitMillis = random.chance(0.3) ? random.whole(50, 3000) : undefined;
    await delay(random.whole(0, 300));
    await this.#request('wait', { ...target, limitMillis });
  }

  async #waitAndDisconnect(random: Random): Promise<void> {
    const target = this.#target(random, WAITED_KEYS);
    const stays = random.chance(0.5) ? random.whole(0, 20) : random.whole(20, 1500);
    await delay(random.whole(0, 200));
    await this.#request('disconnect', target, stays);
  }

  async #holdAndRelease(random: Random): Promise<void> {
    const target = this.#target(random, KEYS.released);
    const pause = random.whole(10, 80);
    const holds = random.whole(0, 150);
    const [first, second] = [
      random.pick(this.parts.fleet.places),
      random.pick(this.parts.fleet.places),
    ];
    const isReleasedTwice = random.chance(0.2);
    await delay(pause);
    const requestId = await this.#request('check', target);
    if (requestId === undefined) return;
    await delay(holds);
    await Promise.all([
      this.#release({ ...target, replica: first }, requestId),
      isReleasedTwice && this.#release({ ...target, replica: second }, requestId),
    ]);
  }

  #target(random: Random, keys: readonly string[]): Target {
    return { key: random.pick(keys), replica: random.pick(this.parts.fleet.places) };
  }

  /** @returns the id of the approval, if it was one */
  async #request(
    kind: Exclude<RequestKind, 'release'>,
    target: Target,
    disconnectsAfterMillis?: number,
  ): Promise<string | undefined> {
    const { limitMillis } = target;
    const limit = limitMillis === undefined ? '' : `&maxWaitMillis=${limitMillis}`;
    const query = kind === 'check' ? '' : `?canWait=true${limit}`;
    const ended = this.parts.ledger.sent({ ...target, kind, requestId: undefined });
    const request = begin(
      this.parts.fleet.urlOf(target.replica),
      'POST',
      ratePath(target.key) + query,
      this.parts.headers?.(),
    );
    const disconnects =
      disconnectsAfterMillis === undefined
        ? undefined
        : AbortSignal.timeout(disconnectsAfterMillis);
    disconnects?.addEventListener('abort', () => {
      request.disconnect();
    });
    const answer = await answerTo(request);
    if (!answer) {
      ended({ outcome: disconnects?.aborted === true ? 'disconnected' : 'cut' });
      if (disconnects?.aborted !== true) await delay(PAUSE_AFTER_CUT_MILLIS);
      return undefined;
    }
    const requestId = answer.status === 200 ? requestIdIn(answer.body) : undefined;
    ended({ outcome: 'answered', ...answer, requestId });
    return requestId;
  }

  async #release(target: Target, requestId: string): Promise<void> {
    const ended = this.parts.ledger.sent({ ...target, kind: 'release', requestId });
    const path = `${ratePath(target.key)}/${requestId}`;
    const url = this.parts.fleet.urlOf(target.replica);
    const answer = await answerTo(begin(url, 'DELETE', path, this.parts.headers?.()));
    ended(answer ? { outcome: 'answered', ...answer } : { outcome: 'cut' });
  }
}

/** @returns nothing where the connection broke */
async function answerTo(
  request: PendingRequest,
): Promise<
  (Required<Pick<Entry, 'body' | 'retryAfter' | 'maximum'>> & { status: number }) | undefined
> {
  try {
    const { status, text, headers } = await request.answer;
    const [, maximum] = /;q=(\d+)/.exec(String(headers['ratelimit-policy'])) ?? [];
    return {
      status,
      body: text,
      retryAfter: headers['retry-after'],
      maximum: maximum === undefined ? undefined : Number(maximum),
    };
  } catch {
    return undefined;
  }
}

function requestIdIn(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { request_id?: string }).request_id;
  } catch {
    return undefined;
  }
}
