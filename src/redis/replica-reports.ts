import type { Cluster, Redis } from 'ioredis';
import type { Logger } from 'pino';

import type { Clock } from '../common/clock.js';
import type { CallGuard } from './availability/call-guard.js';
import type { Scripts } from './scripts/scripts.js';
import type { WakeMessages } from './waiting/wake-channel.js';

/** The least time between two reports of a replica, however many replicas ask for them. */
const SHORTEST_MILLIS = 1000;
/** Reports are removed if nobody has asked for them for so long. */
const KEPT_MILLIS = 15_000;
/** A report that has not changed for so long, although it was asked for, is the report of a replica that has ended. */
const STALE_MILLIS = 10_000;
/** How long the first reader waits for the reports that it asks for. Later readers get the last ones. */
const PATIENCE_MILLIS = 250;

const QUESTION = JSON.stringify({ report: true });

interface ReportsParts {
  readonly names: { readonly name: string; readonly channel: string };
  readonly replicaId: string;
  readonly commands: Redis | Cluster;
  readonly messages: WakeMessages;
  readonly guard: Pick<CallGuard, 'run'>;
  readonly scripts: Pick<Scripts, 'report'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What this replica reports. */
  readonly report: () => Promise<string>;
}

/**
 * The reports of all replicas, while somebody reads them. A reader asks by a message, and each replica then writes its
 * report into one hash. If nobody reads, no replica writes, and the hash expires.
 */
export class ReplicaReports {
  #reportedAt = -Infinity;
  #askedAt = -Infinity;
  /** By replica, the last report and when it was first seen. */
  #seen = new Map<string, { readonly text: string; readonly at: number }>();

  constructor(private readonly parts: ReportsParts) {
    const { channel } = parts.names;
    const { subscriber } = parts.messages;
    subscriber.listen({
      onSubscribed: () => undefined,
      onMessage: (from) => {
        if (from === channel) void this.#write();
      },
    });
    subscriber.subscribe(channel);
  }

  /**
   * Asks for new reports, and reads those of the other replicas.
   * @throws UnavailableError if the store is down
   */
  async read(): Promise<string[]> {
    const { clock, messages, names } = this.parts;
    const isFirst = clock.now() - this.#askedAt > STALE_MILLIS;
    this.#askedAt = clock.now();
    const listening = Number(await messages.publish(names.channel, QUESTION));
    const hasOthers = listening > 1;
    if (isFirst && hasOthers)
      await new Promise<void>((resolve) => clock.after(PATIENCE_MILLIS, resolve));
    const reports = await this.#run(false, () => this.parts.commands.hgetall(names.name));
    const now = clock.now();
    const seen = new Map<string, { readonly text: string; readonly at: number }>();
    for (const [replica, text] of Object.entries(reports)) {
      const before = this.#seen.get(replica);
      if (replica !== this.parts.replicaId) {
        seen.set(replica, before?.text === text ? before : { text, at: now });
      }
    }
    this.#seen = seen;
    const isStale = ({ at }: { readonly at: number }): boolean => now - at > STALE_MILLIS;
    const ended = [...seen].flatMap(([replica, report]) => (isStale(report) ? [replica] : []));
    if (ended.length > 0) {
      await this.#run(true, () => this.parts.commands.hdel(names.name, ...ended));
    }
    return [...seen.values()].filter((report) => !isStale(report)).map(({ text }) => text);
  }

  async #write(): Promise<void> {
    const { clock, logger, names, scripts } = this.parts;
    if (clock.now() - this.#reportedAt < SHORTEST_MILLIS) return;
    this.#reportedAt = clock.now();
    try {
      await scripts.report(names.name, await this.parts.report(), KEPT_MILLIS);
    } catch (error) {
      logger.debug({ err: error }, 'no report written');
    }
  }

  #run<Reply>(isWrite: boolean, send: () => Promise<Reply>): Promise<Reply> {
    const { name } = this.parts.names;
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
