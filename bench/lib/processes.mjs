// The processes of a benchmark: servers that can be asked for their CPU time and memory, and Redis.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Redis } from 'ioredis';

import { freePort } from '../../scripts/lib/free-port.mjs';
import { accepts, end, track } from './children.mjs';

const PROBE = new URL('probe.mjs', import.meta.url).href;

export const SLUICE = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
export const peer = (name) => fileURLToPath(new URL(`../peers/${name}.mjs`, import.meta.url));

/** A Node program that serves HTTP on `port`, with the probe in it. */
export class Server {
  static async start(name, program, environment = {}, output = 'inherit') {
    const port = await freePort();
    const server = new Server(name, port);
    server.child = spawn(process.execPath, ['--expose-gc', '--import', PROBE, program], {
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'production',
        HOST: '127.0.0.1',
        PORT: String(port),
        LOG_LEVEL: 'warn',
        ...environment,
      },
      stdio: ['ignore', output, 'inherit', 'ipc'],
    });
    track(server.child, name);
    await accepts(port);
    return server;
  }

  constructor(name, port) {
    this.name = name;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** The answer of the server's process to an IPC message. */
  async ask(question) {
    this.child.send({ ask: question });
    const [answer] = await once(this.child, 'message');
    return answer;
  }

  async cpuMicros() {
    return (await this.ask('cpu')).cpuMicros;
  }

  /** After a garbage collection. */
  async residentBytes() {
    return (await this.ask('memory')).residentBytes;
  }

  stop() {
    return end(this.child, 'SIGTERM');
  }
}

/** A Redis of the benchmark's own, and a client to ask it with. */
export class RedisServer {
  /**
   * @param more options of redis-server
   * @param under the words of a program that runs it
   */
  static async start(program, more = [], under = []) {
    const server = new RedisServer();
    server.port = await freePort();
    server.url = `redis://127.0.0.1:${server.port}`;
    server.folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
    const [command, ...words] = [...under, program];
    server.child = spawn(
      command,
      [...words, '--port', server.port, '--bind', '127.0.0.1', '--dir', server.folder].concat([
        '--save',
        '',
        '--appendonly',
        'no',
        '--maxmemory-policy',
        'noeviction',
        ...more,
      ]),
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    track(server.child, 'redis-server');
    await accepts(server.port);
    server.client = new Redis(server.url);
    return server;
  }

  async cpuMicros() {
    const info = await this.client.info('cpu');
    const seconds = [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].map(([, s]) =>
      Number(s),
    );
    return seconds.reduce((sum, s) => sum + s, 0) * 1e6;
  }

  async commandsProcessed() {
    const info = await this.client.info('stats');
    return Number(/^total_commands_processed:(\d+)/m.exec(info)[1]);
  }

  /** How often a script was called, as a function or by EVALSHA. */
  async scriptCalls() {
    return (await this.#scriptStatistics()).calls;
  }

  /** Its own time for a call of a script since its statistics were reset. */
  async microsPerScriptCall() {
    const { calls, micros } = await this.#scriptStatistics();
    return micros / calls;
  }

  async #scriptStatistics() {
    const stats = await this.client.info('commandstats');
    const rows = [...stats.matchAll(/^cmdstat_(?:fcall|evalsha):calls=(\d+),usec=(\d+)/gm)];
    const sum = (column) => rows.reduce((total, row) => total + Number(row[column]), 0);
    return { calls: sum(1), micros: sum(2) };
  }

  async resetStatistics() {
    await this.client.call('CONFIG', 'RESETSTAT');
  }

  /** The settings by which a replica uses it. */
  get settings() {
    return { REDIS_URL: this.url };
  }

  async usedBytes() {
    return Number(/^used_memory:(\d+)/m.exec(await this.client.info('memory'))[1]);
  }

  async version() {
    return /^redis_version:(\S+)/m.exec(await this.client.info('server'))[1];
  }

  async stop(signal = 'SIGKILL') {
    this.client.disconnect();
    await end(this.child, signal);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
