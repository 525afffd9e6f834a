import type { Cluster, Redis } from 'ioredis';
import type { Logger } from 'pino';
import { z } from 'zod';

import type { Clock } from '../common/clock.js';
import { parsedMessage } from '../common/schemas.js';
import type { CallGuard } from './availability/call-guard.js';
import type { Scripts } from './scripts/scripts.js';
import type { KeyNaming } from './shared/key-names.js';
import type { WakeMessages } from './waiting/wake-channel.js';

/** The least time between two reports of a replica, however many replicas ask for them. */
const SHORTEST_MILLIS = 1000;
/** Reports are removed if nobody has asked for them for so long. */
const KEPT_MILLIS = 15_000;
/** A report that has not changed for so long, although it was asked for, is the report of a replica that has ended. */
const STALE_MILLIS = 10_000;
/** How long the first reader waits for the reports that it asks for. Later readers get the last ones. */
const PATIENCE_MILLIS = 250;

/** Pages of histories are removed if nobody has looked at their key for so long: a minute after they are too old to be shown. */
const PAGES_KEPT_MILLIS = 17 * 60_000;

/** The keys are what somebody looks at. */
const questionSchema = z.object({ report: z.literal(true), keys: z.array(z.string()) });
type Question = z.infer<typeof questionSchema>;

/** What this replica tells the others. */
export interface OwnReports {
  readonly report: () => Promise<string>;
  /** Somebody looks at a key. */
  readonly watch: (key: string) => void;
  /** Writes the pages of a key's history that have changed. */
  readonly share: (
    key: string,
    write: (page: { readonly minute: number; readonly text: string }) => Promise<void>,
  ) => Promise<void>;
}

/** The report of another replica. */
interface OtherReport {
  readonly text: string;
  /** How long ago it was first seen. */
  readonly ageMillis: number;
}

interface ReportsParts {
  readonly naming: Pick<KeyNaming, 'reports' | 'namesOf'>;
  readonly replicaId: string;
  readonly commands: Redis | Cluster;
  readonly messages: WakeMessages;
  readonly guard: Pick<CallGuard, 'run'>;
  readonly scripts: Pick<Scripts, 'report'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly own: OwnReports;
}

/**
 * The reports of all replicas, while somebody reads them. A reader asks by a message, and each replica then writes its
 * report into one hash. If nobody reads, no replica writes, and the hash expires. A question names the keys that somebody
 * looks at: of these the replicas also share what they have counted, each minute in a hash of the key.
 */
export class ReplicaReports {
  #reportedAt = -Infinity;
  #askedAt = -Infinity;
  /** By replica, the last report and when it was first seen. */
  #seen = new Map<string, { readonly text: string; readonly at: number }>();

  constructor(private readonly parts: ReportsParts) {
    const { channel } = parts.naming.reports;
    const { subscriber } = parts.messages;
    subscriber.listen({
      onSubscribed: () => undefined,
      onMessage: (from, message) => {
        if (from === channel) this.#answer(message);
      },
    });
    subscriber.subscribe(channel);
  }

  /**
   * Asks for new reports, and for what the replicas have counted of these keys. Reads the reports of the other replicas.
   * @throws UnavailableError if the store is down
   */
  async read(keys: readonly string[]): Promise<OtherReport[]> {
    const { clock, messages, naming } = this.parts;
    const names = naming.reports;
    const question = JSON.stringify({ report: true, keys: [...keys] } satisfies Question);
    const listening = Number(await messages.publish(names.channel, question));
    const isFirst = clock.now() - this.#askedAt > STALE_MILLIS;
    this.#askedAt = clock.now();
    const hasOthers = listening > 1;
    if (isFirst && hasOthers)
      await new Promise<void>((resolve) => clock.after(PATIENCE_MILLIS, resolve));
    const reports = await this.#readHash(names.name);
    const now = clock.now();
    // A Redis that has lost its memory has not heard of each replica yet.
    const seen = new Map(this.#seen);
    for (const [replica, text] of Object.entries(reports)) {
      const before = this.#seen.get(replica);
      if (replica !== this.parts.replicaId) {
        seen.set(replica, before?.text === text ? before : { text, at: now });
      }
    }
    const ended = [...seen].flatMap(([replica, { at }]) =>
      now - at > STALE_MILLIS ? replica : [],
    );
    if (ended.length > 0) {
      await this.#run(names.name, true, () => this.parts.commands.hdel(names.name, ...ended));
    }
    for (const replica of ended) seen.delete(replica);
    this.#seen = seen;
    return [...seen.values()].map(({ text, at }) => ({ text, ageMillis: now - at }));
  }

  /**
   * Reads the pages of a minute of a key's history, by the names of the replicas that have written them.
   * @param minute the number of minutes from 1970 to its begin
   * @throws UnavailableError if the store is down
   */
  readPages(key: string, minute: number): Promise<Record<string, string>> {
    return this.#readHash(this.parts.naming.namesOf(key).history(minute));
  }

  #answer(message: string): void {
    const keys = parsedMessage(questionSchema, message)?.keys ?? [];
    for (const key of keys) {
      this.parts.own.watch(key);
      void this.#share(key);
    }
    void this.#write();
  }

  async #share(key: string): Promise<void> {
    const { logger, naming, own, scripts } = this.parts;
    const names = naming.namesOf(key);
    try {
      await own.share(key, ({ minute, text }) =>
        scripts.report(names.history(minute), text, PAGES_KEPT_MILLIS),
      );
    } catch (error) {
      logger.debug({ err: error, key }, 'no history written');
    }
  }

  async #write(): Promise<void> {
    const { clock, logger, naming, own, scripts } = this.parts;
    if (clock.now() - this.#reportedAt < SHORTEST_MILLIS) return;
    this.#reportedAt = clock.now();
    try {
      await scripts.report(naming.reports.name, await own.report(), KEPT_MILLIS);
    } catch (error) {
      logger.debug({ err: error }, 'no report written');
    }
  }

  #readHash(name: string): Promise<Record<string, string>> {
    return this.#run(name, false, () => this.parts.commands.hgetall(name));
  }

  #run<Reply>(name: string, isWrite: boolean, send: () => Promise<Reply>): Promise<Reply> {
    return this.parts.guard.run({
      script: 'report',
      name,
      size: 1,
      isWrite,
      isRepeatable: true,
      send,
    });
  }
}
