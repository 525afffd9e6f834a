import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

import { acceptsConnections } from '../accepts-connections.js';
import { freePort } from '../free-port.js';
import { until } from '../until.js';
import { ROOT } from './pages.js';

/** What the stand-in has seen. */
export interface StandInStats {
  readonly answered: number;
  readonly refused: number;
  readonly mostAtOnce: number;
  readonly mostCalls: number;
  readonly mostTokens: number;
}

export interface StandInLlm {
  readonly url: string;
  stats(): Promise<StandInStats>;
}

/** The program that stands in for LLM vendors on docs/llm-apis.md, for the tests of a file or a `describe`. */
export function useStandInLlm(environment: Readonly<Record<string, string>> = {}): StandInLlm {
  let url = '';
  let stop: () => Promise<unknown>;
  beforeAll(async () => {
    const port = await freePort();
    const program = join(ROOT, 'clients/node/examples/stand-in-llm.mjs');
    const child = spawn(process.execPath, [program], {
      env: { ...environment, PORT: String(port) },
      stdio: 'ignore',
    });
    stop = () => {
      const ended = once(child, 'exit');
      child.kill();
      return ended;
    };
    await until(() => acceptsConnections(port));
    url = `http://127.0.0.1:${port}`;
  });
  afterAll(() => stop());
  return {
    get url() {
      return url;
    },
    stats: async () => (await (await fetch(`${url}/stats`)).json()) as StandInStats,
  };
}
