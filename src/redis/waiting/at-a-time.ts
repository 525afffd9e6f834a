/** Runs at most `most` jobs at a time. The others wait for their turn, in their order. */
export class AtATime {
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(private readonly most: number) {}

  async run<Result>(job: () => Promise<Result>): Promise<Result> {
    if (this.#running < this.most) this.#running += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await job();
    } finally {
      const next = this.#waiting.shift();
      // The next job takes the place of this one.
      if (next) next();
      else this.#running -= 1;
    }
  }
}
