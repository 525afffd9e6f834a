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

/** A service that is scraped. */
export interface Target {
  readonly url: string;
  /** The labels that the operator would add. */
  readonly labels: Readonly<Record<string, string>>;
  /** Its token, if the service asks for one. */
  readonly headers?: { readonly Authorization: string };
}

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

  /** Starts a Prometheus, and resolves when it has scraped each target. */
  static async start(folder: string, targets: readonly Target[]): Promise<Prometheus> {
    const data = join(folder, 'prometheus');
    await mkdir(data);
    const config = join(folder, 'prometheus.yml');
    await writeFile(config, configuration(targets));
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
      return up.length === targets.length;
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

  /** The alerts that are pending or fire. */
  async activeAlerts(): Promise<string[]> {
    const { alerts } = (await this.#get('alerts')) as {
      alerts: { labels: { alertname: string } }[];
    };
    return [...new Set(alerts.map(({ labels }) => labels.alertname))];
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

function configuration(targets: readonly Target[]): string {
  return stringify({
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(ROOT, RULES_FILE)],
    scrape_configs: targets.map(({ url, labels, headers }, i) => ({
      job_name: `replica-${i}`,
      static_configs: [{ targets: [new URL(url).host], labels }],
      ...(headers && { authorization: { credentials: headers.Authorization.split(' ')[1] } }),
    })),
  });
}
