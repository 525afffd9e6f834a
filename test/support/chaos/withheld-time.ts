import { readFileSync } from 'node:fs';

const PERIOD_MILLIS = 50;
const NANOS_PER_MILLI = 1e6;

/** A process as one of the fleet's replicas. */
interface Watched {
  readonly index: number;
  readonly process: { readonly pid: number };
}

/** How long a replica could have run between two looks, and did not. */
interface Look {
  readonly at: number;
  readonly millis: number;
}

/**
 * Notices for how long the machine withheld its processors from the main threads of replicas that had work to do, by Linux's
 * `schedstat` (https://docs.kernel.org/scheduler/sched-stats.html). On other systems it notices nothing.
 */
export class WithheldTime {
  readonly #looks = new Map<number, Look[]>();
  readonly #totals = new Map<number, number>();
  readonly #timer: NodeJS.Timeout;

  /** @param living the replicas that serve now */
  constructor(living: () => readonly Watched[]) {
    this.#timer = setInterval(() => {
      for (const replica of living()) this.#look(replica);
    }, PERIOD_MILLIS);
  }

  /** The most that was withheld from the replica at an index in any `spanMillis` that overlap a span of time. */
  mostWithin(index: number, from: number, to: number, spanMillis: number): number {
    const looks = (this.#looks.get(index) ?? []).filter(
      ({ at }) => at >= from - spanMillis && at <= to + spanMillis,
    );
    let [most, sum, first] = [0, 0, 0];
    for (const { at, millis } of looks) {
      sum += millis;
      for (; looks[first]!.at <= at - spanMillis; first += 1) sum -= looks[first]!.millis;
      most = Math.max(most, sum);
    }
    return most;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look({ index, process: { pid } }: Watched): void {
    const total = millisWithheld(pid);
    if (total === undefined) return;
    const before = this.#totals.get(pid);
    this.#totals.set(pid, total);
    if (before === undefined || total === before) return;
    const look = { at: Date.now(), millis: total - before };
    const looks = this.#looks.get(index);
    if (looks) looks.push(look);
    else this.#looks.set(index, [look]);
  }
}

/** @returns undefined if the process has ended, or the system does not tell */
function millisWithheld(pid: number): number | undefined {
  try {
    const [, waited] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
    return Number(waited) / NANOS_PER_MILLI;
  } catch {
    return undefined;
  }
}
