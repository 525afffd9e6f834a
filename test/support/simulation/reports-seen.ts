import type { JudgedCall, JudgedWorld } from './judged-call.js';
import { type Snapshot, Violation } from './snapshot.js';

/** A report that is in force. */
interface SeenReport {
  /** When it ends, by Redis's clock and by the world's time. */
  readonly until: number;
  readonly endsAt: number;
  /** How long it lasts. */
  readonly millis: number;
}

/** The reports of vendors over all calls. Also after Redis's clock has gone back, none lasts longer than it said. */
export class ReportsSeen {
  /** By the names of the limits. */
  #inForce = new Map<string, SeenReport>();

  constructor(private readonly world: JudgedWorld) {}

  judge({ run: { script, now }, after }: JudgedCall): void {
    const before = this.#inForce;
    this.#inForce = new Map();
    for (const [name, until] of endsIn(after)) {
      const seen = before.get(name);
      const isNew = script === 'remaining' && seen?.until !== until;
      const millis = until - now;
      if (isNew || !seen) {
        this.#inForce.set(name, { until, endsAt: this.world.now + millis, millis });
        continue;
      }
      const least = seen.endsAt - this.world.now;
      if (millis < least || millis > seen.millis) {
        const detail = `${millis} ms of ${name}, not ${least} to ${seen.millis}`;
        throw new Violation('a report lasts as long as it says', detail);
      }
      this.#inForce.set(name, { ...seen, until });
    }
  }
}

function endsIn({ state }: Snapshot): (readonly [string, number])[] {
  const limits = state ? [{ ...state, name: 'own' }, ...state.further] : [];
  return limits.flatMap(({ name, report }) => (report ? [[name, report.until] as const] : []));
}
