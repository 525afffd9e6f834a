/** Clients that go on asking until they are stopped. */
export class Clients {
  readonly #running: Promise<void>[] = [];
  readonly #resting = new Set<() => void>();
  readonly #busy = new Map<string, number>();
  readonly #afterwards: (() => void)[] = [];
  /** What clients ended with that should not have. */
  readonly failures: string[] = [];
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Adds so many clients. Each acts again and again. */
  add(name: string, count: number, act: (client: number) => Promise<unknown>): void {
    for (let client = 0; client < count; client += 1) {
      this.#running.push(this.#repeat(name, () => act(client)));
    }
  }

  /** Has something done when the last client has ended. */
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
      const timer = setTimeout(done, millis);
      this.#resting.add(done);
    });
  }

  /** Has all go on that rest. */
  surge(): void {
    for (const goOn of [...this.#resting]) goOn();
  }

  /** Resolves when every client has done what it had begun. */
  async stop(): Promise<void> {
    this.#isOver = true;
    this.surge();
    await Promise.all(this.#running);
    for (const work of this.#afterwards) work();
  }

  /** Which clients have not ended yet, and how many. */
  get busy(): string {
    return [...this.#busy].map(([name, count]) => `${count} ${name}`).join(', ');
  }

  async #repeat(name: string, act: () => Promise<unknown>): Promise<void> {
    this.#busy.set(name, (this.#busy.get(name) ?? 0) + 1);
    try {
      while (!this.#isOver) await act();
    } catch (error) {
      this.failures.push(`${name}: ${String(error)}`);
    }
    const others = this.#busy.get(name)! - 1;
    if (others > 0) this.#busy.set(name, others);
    else this.#busy.delete(name);
  }
}
