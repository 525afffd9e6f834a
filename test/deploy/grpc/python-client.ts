import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { until } from '../../support/until.js';

const SCRIPT = fileURLToPath(new URL('python_client.py', import.meta.url));
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';

/** The outcome of a call, with gRPC's names. */
export interface Outcome {
  readonly code?: string;
  readonly details?: string;
  readonly reply?: unknown;
  readonly services?: readonly string[];
  readonly types?: Readonly<Record<string, string>>;
}

/** A call. */
export interface Call {
  /** Resolves when it has ended. */
  readonly outcome: () => Promise<Outcome>;
}

const running = new Set<ChildProcess>();

/** A gRPC client in Python, which knows the service only by reflection. */
export class PythonClient {
  readonly #process: ChildProcess;
  readonly #calls: Outcome[][] = [];
  #errors = '';

  /** @param host of the service, with its port */
  constructor(python: string, host: string) {
    this.#process = spawn(python, [SCRIPT, host]);
    running.add(this.#process);
    this.#process.stderr!.on('data', (data: Buffer) => (this.#errors += data.toString()));
    createInterface({ input: this.#process.stdout! }).on('line', (line) => {
      const { id, ...outcome } = JSON.parse(line) as Outcome & { id: number };
      this.#calls[id]!.push(outcome);
    });
  }

  /** Asks whether descriptors are within their limits. */
  shouldRateLimit(request: unknown): Call {
    const what = { service: SERVICE, method: 'ShouldRateLimit', request };
    return this.#begin({ do: 'ask', ...what });
  }

  /** Asks for the names of all services. */
  services(): Call {
    return this.#begin({ do: 'services' });
  }

  /** Asks for the types of a message's fields that are messages. */
  types(message: string): Call {
    return this.#begin({ do: 'types', message });
  }

  #begin(command: Readonly<Record<string, unknown>>): Call {
    const outcomes: Outcome[] = [];
    const id = this.#calls.push(outcomes) - 1;
    this.#process.stdin!.write(`${JSON.stringify({ id, ...command })}\n`);
    return {
      outcome: () =>
        until(() => {
          if (this.#process.exitCode === null) return outcomes[0];
          throw new Error(`the client in Python has ended: ${this.#errors}`);
        }),
    };
  }
}

/** Kills every client that the test file has started. */
export async function endPythonClients(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      running.delete(child);
      if (child.exitCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }),
  );
}
