import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { freePort } from '../support/free-port.js';
import { until } from '../support/until.js';
import { ROOT } from './pages.js';
import { idsIn, withoutVarying } from './printed.js';
import type { ShellBlock } from './shell-blocks.js';

/** The ports that the pages use. Each is another one in a test. */
const PORTS = ['8080', '8081', '8082', '8083', '8443', '6379'];
/** The long window of the README leaves time to read. */
const SHORTENED: Readonly<Record<string, string>> = { '20000': '5000' };

/** For what a job in the background prints. */
const PATIENCE_MILLIS = 15_000;

/** A bash in a folder of its own in which `npm start` and `dist/main.js` are those of the project. */
export class ShellSession {
  readonly #replaced = new Map(Object.entries(SHORTENED));
  #printed = '';
  #commands = 0;

  private constructor(
    private readonly bash: ChildProcess,
    ports: Readonly<Record<string, string>>,
  ) {
    for (const [port, free] of Object.entries(ports)) this.#replaced.set(port, free);
    bash.stdout!.on('data', (data: Buffer) => (this.#printed += data.toString()));
  }

  /**
   * @param folder an empty one
   * @param redisServer the program; its redis-cli is in the same folder
   */
  static async start(folder: string, redisServer: string | undefined): Promise<ShellSession> {
    for (const name of await readdir(ROOT)) await symlink(join(ROOT, name), join(folder, name));
    const ports: Record<string, string> = {};
    for (const port of PORTS) ports[port] = String(await freePort());
    const programs = join(folder, '.programs');
    await mkdir(programs);
    if (redisServer !== undefined) await addRedis(programs, redisServer, ports['6379']!);
    await writeFile(join(programs, '.curlrc'), 'no-progress-meter\n');
    const bash = spawn('bash', ['--noprofile', '--norc'], {
      cwd: folder,
      // A group of its own, so that all it has started ends with it.
      detached: true,
      env: {
        ...process.env,
        PATH: `${programs}:${process.env.PATH}`,
        PORT: ports['8080'],
        HOST: '127.0.0.1',
        MAX_EVENT_LOOP_DELAY_MILLIS: '60000',
        NODE_OPTIONS: '',
        CURL_HOME: programs,
      },
    });
    // As on a terminal, where both are seen.
    bash.stdin.write('exec 2>&1\n');
    return new ShellSession(bash, ports);
  }

  /**
   * Runs a command, and waits until it has printed what its page says.
   * @returns what it printed, and what it should have, both without what differs from run to run
   */
  async run(block: ShellBlock): Promise<{ printed: string; expected: string }> {
    const code = this.#replace(block.code);
    const start = this.#printed.length;
    const printed = (): string => this.#printed.slice(start);
    if (block.servesOn !== undefined) {
      const address = this.#replace(`localhost:${block.servesOn}`);
      await this.#execute(`{ ${code}\n} > served.log 2>&1 &\n${untilServing(address)}`);
      return { printed: '', expected: '' };
    }
    await this.#execute(code);
    if (block.prints === undefined) return { printed: '', expected: '' };
    const expected = withoutVarying(this.#replace(block.prints));
    // What a job in the background prints may come later.
    await until(() => withoutVarying(printed()) === expected, PATIENCE_MILLIS).catch(
      () => undefined,
    );
    const ids = idsIn(printed());
    for (const [i, id] of idsIn(block.prints).entries()) {
      if (ids[i] !== undefined && !this.#replaced.has(id)) this.#replaced.set(id, ids[i]);
    }
    return { printed: withoutVarying(printed()), expected };
  }

  /** Ends the shell with all that it has started. */
  async end(): Promise<void> {
    if (this.bash.exitCode !== null || this.bash.signalCode !== null) return;
    const ended = once(this.bash, 'close');
    process.kill(-this.bash.pid!, 'SIGTERM');
    await ended;
  }

  /** Returns when it has ended, jobs in the background aside. */
  async #execute(code: string): Promise<void> {
    this.#commands += 1;
    const marker = `<<<end of ${this.#commands}>>>`;
    this.bash.stdin!.write(`${code}\necho '${marker}'\n`);
    await until(() => this.#printed.includes(marker));
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

function untilServing(address: string): string {
  return `curl -s -o served-health.log --retry 60 --retry-connrefused --retry-delay 1 ${address}/healthz`;
}

/** redis-cli knows no variable for the port, and formats its output for a terminal only. */
async function addRedis(folder: string, redisServer: string, port: string): Promise<void> {
  await symlink(redisServer, join(folder, 'redis-server'));
  const cli = join(folder, 'redis-cli');
  const program = join(dirname(redisServer), 'redis-cli');
  await writeFile(cli, `#!/bin/sh\nexec '${program}' -p ${port} --no-raw "$@"\n`);
  await chmod(cli, 0o755);
}
