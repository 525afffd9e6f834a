import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { acceptsConnections } from '../../support/accepts-connections.js';
import { nginxProgram } from '../../support/describe-with-nginx.js';
import { freePort } from '../../support/free-port.js';
import { until } from '../../support/until.js';
import { configurationIn } from './balancer-configuration.js';

/** A request in the balancer's log. */
export interface Passed {
  readonly status: number;
  /** Host and port of the server that was asked; `-` for none. */
  readonly endpoint: string;
}

const running = new Set<ChildProcess>();
let count = 0;

/** Stops every balancer that the test file has started, with its waiting requests; for `afterAll`. */
export async function killBalancers(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }),
  );
}

/** An nginx with `deploy/nginx.conf`, in a process of its own. */
export class Balancer {
  readonly url: string;
  #child: ChildProcess | undefined;

  private constructor(
    private readonly port: number,
    private readonly folder: string,
  ) {
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Starts a balancer on a free port, and resolves when it serves. */
  static async start(folder: string, replicas: readonly string[]): Promise<Balancer> {
    count += 1;
    const own = join(folder, `balancer-${count}`);
    await mkdir(own);
    const balancer = new Balancer(await freePort(), own);
    await balancer.#configure(replicas);
    await balancer.#start();
    return balancer;
  }

  /**
   * Sends new requests to these replicas from now on, and lets requests under way finish. Resolves
   * when no new request goes to another replica.
   */
  async setEndpoints(replicas: readonly string[]): Promise<void> {
    const reloads = this.#generations().length;
    await this.#configure(replicas);
    this.#child?.kill('SIGHUP');
    await until(() => {
      const generations = this.#generations();
      const old = startedIn(generations.slice(0, reloads));
      const fresh = generations.slice(reloads);
      const failure = fresh.find((log) => log.includes('[emerg]'));
      if (failure !== undefined) throw new Error(`nginx did not reload: ${failure}`);
      const leaving = leavingIn(generations);
      return startedIn(fresh).length > 0 && old.every((pid) => leaving.includes(pid));
    });
  }

  /** Stops it when all requests are answered. */
  async stop(): Promise<void> {
    this.#child?.kill('SIGQUIT');
    await until(() => this.#ended);
  }

  /** The requests that it has read, by correlation id; complete once it has stopped. */
  account(): ReadonlyMap<string, Passed> {
    const lines = this.#read('access.log').trimEnd().split('\n');
    return new Map(
      lines.map((line) => {
        const [correlationId = '', status, endpoint = ''] = line.split(' ');
        return [correlationId, { status: Number(status), endpoint }];
      }),
    );
  }

  /** The errors in its log. */
  complaints(): string[] {
    const lines = this.#read('error.log').split('\n');
    // nginx warns that only root may raise RLIMIT_NOFILE. A test has few open files.
    return lines.filter(
      (line) => /\[(?:error|crit|alert|emerg)\]/.test(line) && !line.includes('RLIMIT_NOFILE'),
    );
  }

  get #ended(): boolean {
    return this.#child !== undefined && !running.has(this.#child);
  }

  async #configure(replicas: readonly string[]): Promise<void> {
    const endpoints = replicas.map((url) => new URL(url).host);
    const text = configurationIn({ port: this.port, endpoints, folder: this.folder });
    const next = join(this.folder, 'next.conf');
    await writeFile(next, text);
    await rename(next, join(this.folder, 'nginx.conf'));
  }

  async #start(): Promise<void> {
    const options = ['-p', this.folder, '-c', 'nginx.conf', '-e', 'error.log', '-g', 'daemon off;'];
    const child = spawn(nginxProgram(), options, { stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
    running.add(child);
    child.once('exit', () => running.delete(child));
    this.#child = child;
    await until(() => {
      if (this.#ended) throw new Error(`nginx ended with ${String(child.exitCode)}: ${stderr}`);
      return acceptsConnections(this.port);
    });
  }

  /** Its log, split at each reload. */
  #generations(): string[] {
    return this.#read('error.log').split(/: reconfiguring$/m);
  }

  #read(name: string): string {
    const path = join(this.folder, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }
}

/** The process ids of the workers that were started. */
function startedIn(logs: readonly string[]): string[] {
  return matchesIn(logs, / start worker process (\d+)$/gm);
}

/** The process ids of the workers that accept no more connections. */
function leavingIn(logs: readonly string[]): string[] {
  return matchesIn(logs, / (\d+)#\d+: gracefully shutting down$/gm);
}

function matchesIn(logs: readonly string[], pattern: RegExp): string[] {
  return logs.flatMap((log) => [...log.matchAll(pattern)].map(([, match]) => match!));
}
