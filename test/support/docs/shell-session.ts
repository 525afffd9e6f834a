import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { CHILD_PATH } from '../child-environment.js';
import { freePort } from '../free-port.js';
import { until } from '../until.js';
import { pages, ROOT } from './pages.js';
import { portsSetBy, type ShellBlock, shellBlocks } from './shell-blocks.js';

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** The parts of an output that differ between runs and machines. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [UUID, '<id>'],
  [/(?:\/[\w.-]+)*\/tmp\.\w+/g, '<folder>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>'],
  [/^Date: .*$/gm, 'Date: <time>'],
  [/\b(Retry-After|X-Correlation-ID): \S+/g, '$1: <varies>'],
  [/"millisToRoom":\d+(?:\.\d+)?/g, '"millisToRoom":<decimal>'],
  [/"(responseTime|remotePort)":\d+/g, '"$1":<number>'],
  [/curl\/[\d.]+/g, 'curl/<version>'],
  [/[\w.-]+-[0-9a-f]{8}(?=["#\n]|$)/g, '<replica>'],
  [/\d+\.\d+/g, '<decimal>'],
  [/\d{10,}/g, '<number>'],
];

/** What is left of a window or a pause, in s. A page that runs slowly has a little less. */
const SECONDS_LEFT = /(?<=;t=)\d+|(?<=\bin )\d+(?= s\b)/g;

/** An output without the parts that differ between runs. Seconds that are left are in tens. */
function withoutVarying(text: string): string {
  return VARYING.reduce(
    (rest, [pattern, name]) => rest.replaceAll(pattern, name),
    text
      .replaceAll('\r', '')
      .replaceAll(SECONDS_LEFT, (seconds) => String(10 * Math.ceil(Number(seconds) / 10)))
      .trim(),
  );
}

/** The request ids in a text, in their order. */
function idsIn(text: string): string[] {
  return text.match(UUID) ?? [];
}

/** The ports of README and docs/docker.md, and those that other pages set. A test replaces each with a free port. */
const README_PORTS = ['8080', '8081'];
const PORTS = [...README_PORTS, ...pages().flatMap((page) => portsSetBy(shellBlocks(page)))];
/** Times that a test shortens: the README's long window only leaves time to read. */
const SHORTENED: Readonly<Record<string, string>> = { '20000': '5000' };
/** How long a test waits for the output of background jobs. */
const PATIENCE_MILLIS = 15_000;

export interface SessionOptions {
  /** An empty folder for logs and other files. */
  readonly folder: string;
  /** Whether commands run in the project's own folder. Otherwise they run in `folder`, which has links to its files. */
  readonly inProject?: boolean;
  /** Programs in front of PATH: a name and a script for sh. */
  readonly programs?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
  /** Replacements for words of the pages. */
  readonly replaced?: Readonly<Record<string, string>>;
}

/** A bash in which the commands of a page run one after another. */
export class ShellSession {
  readonly #replaced = new Map(Object.entries(SHORTENED));
  #printed = '';
  #commands = 0;

  private constructor(
    private readonly bash: ChildProcess,
    private readonly folder: string,
    replaced: Readonly<Record<string, string>>,
  ) {
    for (const [word, other] of Object.entries(replaced)) this.#replaced.set(word, other);
    bash.stdout!.on('data', (data: Buffer) => (this.#printed += data.toString()));
  }

  static async start(options: SessionOptions): Promise<ShellSession> {
    const { folder, inProject = false, programs = {}, environment = {}, replaced } = options;
    if (!inProject) {
      for (const name of await readdir(ROOT)) await symlink(join(ROOT, name), join(folder, name));
    }
    const ports: Record<string, string> = {};
    for (const port of new Set(PORTS)) ports[port] = String(await freePort());
    const bash = spawn('bash', ['--noprofile', '--norc'], {
      cwd: inProject ? ROOT : folder,
      // A group of its own, so that all its children end with it.
      detached: true,
      env: {
        PATH: `${await addPrograms(folder, programs)}:${CHILD_PATH}`,
        HOME: folder,
        PORT: ports['8080'],
        SLUICE_PORT: ports['8080'],
        HOST: '127.0.0.1',
        MAX_EVENT_LOOP_DELAY_MILLIS: '60000',
        CURL_HOME: folder,
        npm_config_update_notifier: 'false',
        ...environment,
      },
    });
    await writeFile(join(folder, '.curlrc'), 'no-progress-meter\n');
    // As on a terminal, which shows both streams.
    bash.stdin.write('exec 2>&1\n');
    return new ShellSession(bash, folder, { ...ports, ...replaced });
  }

  /**
   * Runs a command, and waits until it has printed what its page says.
   * @returns the actual and the expected output, both without the parts that differ between runs
   */
  async run(block: ShellBlock): Promise<{ printed: string; expected: string }> {
    const code = this.#replace(block.code);
    const start = this.#printed.length;
    const printed = (): string => this.#printed.slice(start);
    if (block.servesOn !== undefined) {
      await this.#serve(code, this.#replace(`localhost:${block.servesOn}`));
      return { printed: printed(), expected: '' };
    }
    await this.#execute(code);
    if (block.prints === undefined) return { printed: '', expected: '' };
    const expected = withoutVarying(this.#replace(block.prints));
    // The output of background jobs may come later.
    await until(() => withoutVarying(printed()) === expected, PATIENCE_MILLIS).catch(
      () => undefined,
    );
    const ids = idsIn(printed());
    for (const [i, id] of idsIn(block.prints).entries()) {
      if (ids[i] !== undefined && !this.#replaced.has(id)) this.#replaced.set(id, ids[i]);
    }
    return { printed: withoutVarying(printed()), expected };
  }

  /** Ends the shell with all its children. */
  async end(): Promise<void> {
    if (this.#hasEnded) return;
    const ended = once(this.bash, 'close');
    process.kill(-this.bash.pid!, 'SIGTERM');
    await ended;
  }

  get #hasEnded(): boolean {
    return this.bash.exitCode !== null || this.bash.signalCode !== null;
  }

  /**
   * Starts a service in the background, and returns when it serves. The test has a time limit itself: beside other
   * work, it takes minutes to build an image. Prints the log of a service that ends instead.
   */
  async #serve(code: string, address: string): Promise<void> {
    const log = join(this.folder, '.served.log');
    // curl's own retries are at least a second apart.
    const asking = `curl -s -o '${log}.health' ${address}/healthz`;
    const waiting = `{ kill -0 $! || { cat '${log}'; break; }; } 2> /dev/null; sleep 0.1`;
    await this.#execute(`{ ${code}\n} > '${log}' 2>&1 &\nuntil ${asking}; do ${waiting}; done`);
  }

  /** Returns when the code has ended, except for background jobs. */
  async #execute(code: string): Promise<void> {
    this.#commands += 1;
    const marker = `<<<end of ${this.#commands}>>>`;
    this.bash.stdin!.write(`${code}\necho '${marker}'\n`);
    // The test has a time limit itself.
    await until(() => this.#printed.includes(marker) || this.#hasEnded, Infinity);
    this.#printed = this.#printed.replace(`${marker}\n`, '');
  }

  #replace(text: string): string {
    let replaced = text;
    for (const [one, other] of this.#replaced) {
      replaced = replaced.replaceAll(new RegExp(`\\b${one}\\b`, 'g'), other);
    }
    return replaced;
  }
}

/** @returns scripts for a page that starts a Redis; its redis-cli is in the same folder as the server */
export function redisPrograms(redisServer: string): Readonly<Record<string, string>> {
  const cli = join(dirname(redisServer), 'redis-cli');
  return {
    'redis-server': `exec '${redisServer}' "$@"`,
    // redis-cli formats its output only for a terminal.
    'redis-cli': `exec '${cli}' --no-raw "$@"`,
  };
}

async function addPrograms(
  folder: string,
  programs: Readonly<Record<string, string>>,
): Promise<string> {
  const path = join(folder, '.programs');
  await mkdir(path);
  for (const [name, script] of Object.entries(programs)) {
    await writeFile(join(path, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(path, name), 0o755);
  }
  return path;
}
