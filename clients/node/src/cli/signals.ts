import { InterruptedError } from './errors.js';

const CAUGHT: readonly NodeJS.Signals[] = [
  ...(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const),
];

/**
 * The signals that this process gets. They go to `receiver` if there is one. Without one, the first interrupts, and the
 * next ends the process.
 */
export class Signals {
  readonly #interruption = new AbortController();
  receiver: ((signal: NodeJS.Signals) => void) | undefined;

  constructor() {
    for (const name of CAUGHT) process.on(name, this.#receive);
  }

  /** Aborted by the first signal that nobody received, with an InterruptedError. */
  get interruption(): AbortSignal {
    return this.#interruption.signal;
  }

  /** Interrupts, as a signal does that nobody receives. */
  interrupt(name: NodeJS.Signals): void {
    this.release();
    this.#interruption.abort(new InterruptedError(name));
  }

  /** From now on each signal has its default effect. */
  release(): void {
    for (const name of CAUGHT) process.off(name, this.#receive);
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    if (this.receiver) this.receiver(name);
    else this.interrupt(name);
  };
}
