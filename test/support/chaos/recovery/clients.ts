/** A client that got a 503 waits between this and twice this before it sends the request again. */
const AGAIN_AFTER_MILLIS = 1000;

/** Clients that go on asking until they are stopped. */
export class Clients {
  /** How much slower than usual all go. */
  #slowness = 1;
  readonly #running: Promise<void>[] = [];
  readonly #resting = new Set<() => void>();
  readonly #busy = new Map<string, number>();
  readonly #afterwards: (() => void)[] = [];
  readonly #failures = new Map<string, number>();
  #isOver = false;
  #onOver!: () => void;
  /** Resolves when all are to stop. */
  readonly over = new Promise<void>((resolve) => {
    this.#onOver = resolve;
  });

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Adds `count` clients. Each acts again and again. */
  add(name: string, count: number, act: (client: number) => Promise<unknown>): void {
    for (let client = 0; client < count; client += 1) {
      this.#running.push(this.#repeat(name, () => act(client)));
    }
  }

  /** Multiplies all rests from now on: a load that the machine can't keep up with would be a fault of its own. */
  slowDown(slowness: number): void {
    this.#slowness = slowness;
  }

  /** Has something done at the end. */
  afterwards(work: () => void): void {
    this.#afterwards.push(work);
  }

  /** Rests, but no longer than to the next surge, or the end. */
  rest(millis: number): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#resting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, millis * this.#slowness);
      this.#resting.add(done);
    });
  }

  /** Lets some time pass before something is sent again. */
  pause(): Promise<void> {
    const millis = AGAIN_AFTER_MILLIS * (1 + Math.random());
    return new Promise((resolve) => setTimeout(resolve, millis * this.#slowness));
  }

  /** Has all go on that rest. */
  surge(): void {
    for (const goOn of [...this.#resting]) goOn();
  }

  /** Resolves when every client has done what it had begun. */
  async stop(): Promise<void> {
    this.#isOver = true;
    this.#onOver();
    this.surge();
    await Promise.all(this.#running);
  }

  /** Does what was left for the end. */
  end(): void {
    for (const work of this.#afterwards) work();
  }

  /** Which clients have not ended yet, and how many. */
  get busy(): string {
    return [...this.#busy].map(([name, count]) => `${count} ${name}`).join(', ');
  }

  /** What clients ended with that should have gone on. */
  get failures(): string[] {
    return [...this.#failures].map(([failure, count]) => `${count} ${failure}`);
  }

  async #repeat(name: string, act: () => Promise<unknown>): Promise<void> {
    this.#busy.set(name, (this.#busy.get(name) ?? 0) + 1);
    try {
      while (!this.#isOver) await act();
    } catch (error) {
      const failure = `${name}: ${String(error)}`;
      this.#failures.set(failure, (this.#failures.get(failure) ?? 0) + 1);
    }
    const others = this.#busy.get(name)! - 1;
    if (others > 0) this.#busy.set(name, others);
    else this.#busy.delete(name);
  }
}
