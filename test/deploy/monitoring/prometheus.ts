import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { stringify } from 'yaml';

import { freePort } from '../../support/free-port.js';
import { send } from '../../support/http-client.js';
import { provided } from '../../support/provided.js';
import { until } from '../../support/until.js';
import { ROOT } from '../repository-files.js';
import { RULES_FILE } from './shipped-queries.js';

/** The labels that the operator would add. */
const OF_THE_TARGET = { namespace: 'shop', job: 'sluice', pod: 'sluice-1' };

/** One series of an answer. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** `describe` for tests that need a Prometheus; skipped if `scripts/lib/find-prometheus.mjs` has found none. */
export function describeWithPrometheus(title: string, tests: () => void): void {
  if (provided('SLUICE_TEST_PROMETHEUS') === '') describe.skip(title, tests);
  else describe(title, tests);
}

/** A Prometheus with the alerts that ship, in a process of its own. */
export class Prometheus {
  private constructor(
    private readonly url: string,
    private readonly child: ChildProcess,
  ) {}

  /** Starts a Prometheus, and resolves when it has scraped the replica. */
  static async start(folder: string, replicaUrl: string): Promise<Prometheus> {
    const data = join(folder, 'prometheus');
    await mkdir(data);
    const config = join(folder, 'prometheus.yml');
    await writeFile(config, configuration(replicaUrl));
    const port = await freePort();
    const child = spawn(
      provided('SLUICE_TEST_PROMETHEUS'),
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${data}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let log = '';
    child.stderr.on('data', (text: Buffer) => (log += text.toString()));
    const prometheus = new Prometheus(`http://127.0.0.1:${port}`, child);
    await until(async () => {
      if (child.exitCode !== null) throw new Error(log);
      const up = await prometheus.query('up == 1').catch(() => []);
      return up.length === 1;
    });
    return prometheus;
  }

  /** The current result of a query. */
  async query(expr: string): Promise<Sample[]> {
    const { result } = (await this.#get(`query?query=${encodeURIComponent(expr)}`)) as {
      result: { metric: Record<string, string>; value: [number, string] }[];
    };
    return result.map(({ metric, value: [, text] }) => ({ metric, value: Number(text) }));
  }

  /** The values of a label in the series that a selector matches. */
  async labelValues(selector: string, label: string): Promise<unknown> {
    return this.#get(`label/${label}/values?match[]=${encodeURIComponent(selector)}`);
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null) return;
    this.child.kill('SIGTERM');
    await once(this.child, 'exit');
  }

  async #get(path: string): Promise<unknown> {
    const { status, text, json } = await send(this.url, 'GET', `/api/v1/${path}`);
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
    return (json() as { data: unknown }).data;
  }
}

function configuration(replicaUrl: string): string {
  const target = { targets: [new URL(replicaUrl).host], labels: OF_THE_TARGET };
  return stringify({
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(ROOT, RULES_FILE)],
    scrape_configs: [{ job_name: 'replica', static_configs: [target] }],
  });
}
