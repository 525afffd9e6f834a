import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { Redis, type RedisOptions } from 'ioredis';

import { freePort } from './free-port.js';
import { asLimiterUser, expectNothingRefused, LIMITER_USER, limiterRules } from './redis-user.js';

/** Without the option that distinguishes kinds of clients in the types of ioredis. */
export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

export interface RedisProcessOptions {
  /** More lines for its redis.conf. Called again if the port turns out to be taken. */
  readonly configure?: (port: number) => readonly string[] | Promise<readonly string[]>;
  /** Writes every command to disk before it is answered, so that SIGKILL loses none. */
  readonly keepsData?: boolean;
  readonly sentinel?: boolean;
  /** The rules of the services' user. By default the rules for a single Redis. */
  readonly userRules?: readonly string[];
  /** The options of a client besides host and port: credentials, TLS. */
  readonly client?: ClientOptions;
}

/** Long, since a busy machine may be slow. */
const COMMAND_TIMEOUT_MILLIS = 30_000;
/** The log lines of a server and a Sentinel when they serve. */
const READY = /Ready to accept connections|Sentinel ID is/;
const PORT_TAKEN = 'Address already in use';

const running = new Set<RedisProcess>();

/** The `redis-server` for tests that need it as a process; undefined if there is none. */
export function redisProgram(): string | undefined {
  const { SLUICE_TEST_REDIS_SERVER: server, SLUICE_TEST_REDIS_PROGRAM: program = server } =
    process.env;
  return program === '' ? undefined : program;
}

/** Starts a `redis-server` on a free port of 127.0.0.1 and resolves when it serves. */
export async function startRedisProcess(options: RedisProcessOptions = {}): Promise<RedisProcess> {
  for (;;) {
    const port = await freePort();
    const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'));
    const lines = [
      'bind 127.0.0.1',
      `port ${port}`,
      `dir "${folder}"`,
      'save ""',
      userLine(options.userRules ?? limiterRules()),
      ...(options.keepsData ? ['appendonly yes', 'appendfsync always'] : []),
      ...((await options.configure?.(port)) ?? []),
    ];
    const server = new RedisProcess(port, folder, lines, options);
    try {
      await server.restart({ withData: false });
      return server;
    } catch (error) {
      await server.stop();
      if (!(error instanceof Error && error.message.includes(PORT_TAKEN))) throw error;
    }
  }
}

/** Stops every server that the test file has started; for `afterAll`. */
export function stopRedisProcesses(): Promise<void> {
  return stopAll([...running]);
}

/**
 * Stops servers, Sentinels first: they cut all connections to a server when they change its role.
 * @throws Error after all have ended, if one has denied a command to a user
 */
export async function stopAll(servers: readonly RedisProcess[]): Promise<void> {
  const stop = (isSentinel: boolean) =>
    Promise.allSettled(
      servers.filter((server) => server.isSentinel === isSentinel).map((server) => server.stop()),
    );
  const ends = [...(await stop(true)), ...(await stop(false))];
  const failed = ends.find((end) => end.status === 'rejected');
  if (failed) throw failed.reason;
}

/** A `redis-server` in a process and a temporary folder of its own. */
export class RedisProcess {
  /** The URL for a service, whose user has few rights. */
  readonly url: string;
  /** The URL without credentials, for the default user or a client with its own credentials. */
  readonly address: string;
  #child: ChildProcess | undefined;
  #suspended = false;

  constructor(
    readonly port: number,
    readonly folder: string,
    private readonly lines: readonly string[],
    private readonly options: RedisProcessOptions,
  ) {
    this.address = `${options.client?.tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`;
    this.url = asLimiterUser(this.address);
    running.add(this);
  }

  get isSentinel(): boolean {
    return this.options.sentinel === true;
  }

  /** Changes with each restart. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether it runs and is not suspended. */
  get responsive(): boolean {
    return this.#alive && !this.#suspended;
  }

  /**
   * Sends one command on a connection of its own.
   * @throws Error for an error reply, and if no reply comes
   */
  async command(...command: readonly [string, ...(string | number)[]]): Promise<unknown> {
    const [name, ...args] = command;
    const client = this.connect({
      commandTimeout: COMMAND_TIMEOUT_MILLIS,
      connectTimeout: COMMAND_TIMEOUT_MILLIS,
      retryStrategy: null,
      enableReadyCheck: false,
    });
    // The command fails with this error. Without a listener ioredis would also print it.
    client.on('error', () => undefined);
    try {
      return await client.call(name, ...args);
    } finally {
      // To disconnect a closed connection would leave a timer behind.
      if (client.status !== 'end') client.disconnect();
    }
  }

  /** A client with the credentials and certificates that this server asks for. */
  connect(options: ClientOptions = {}): Redis {
    return new Redis({ host: '127.0.0.1', port: this.port, ...this.options.client, ...options });
  }

  /** Sends SIGSTOP or SIGCONT. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#suspended = signal === 'SIGSTOP';
    this.#child?.kill(signal);
  }

  /** Kills it, and resolves when it has ended. Its folder stays, for a restart. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.#alive) return;
    child.kill(signal);
    await once(child, 'exit');
  }

  /** Starts it again on its port, with the data in its folder or with an empty folder. */
  async restart({ withData }: { readonly withData: boolean }): Promise<void> {
    await this.kill();
    const file = join(this.folder, 'redis.conf');
    if (!withData) {
      await this.#removeFolder();
      await mkdir(this.folder);
      await writeFile(file, this.lines.join('\n'));
    }
    const args = this.options.sentinel ? [file, '--sentinel'] : [file];
    this.#suspended = false;
    this.#child = spawn(program(), args, { stdio: ['ignore', 'pipe', 'pipe'] });
    await saysReady(this.#child);
  }

  /**
   * Stops it and removes its folder.
   * @throws Error if it has denied a command to a user since its last start
   */
  async stop(): Promise<void> {
    try {
      if (this.responsive) await expectNothingRefused((...command) => this.command(...command));
    } finally {
      await this.kill();
      await this.#removeFolder();
      running.delete(this);
    }
  }

  async #removeFolder(): Promise<void> {
    // A process that Redis forked to save data may outlive Redis for a moment, and still write.
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  get #alive(): boolean {
    const child = this.#child;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }
}

function userLine(rules: readonly string[]): string {
  const { username, password } = LIMITER_USER;
  return `user ${username} on >${password} ${rules.join(' ')}`;
}

function program(): string {
  const path = redisProgram() ?? process.env.SLUICE_TEST_REDIS_SERVER;
  if (path === undefined) throw new Error('no redis-server to test with: run `npm test`');
  return path;
}

async function saysReady(server: ChildProcess): Promise<void> {
  let output = '';
  server.stderr!.on('data', (data: Buffer) => (output += data.toString()));
  const lines = createInterface({ input: server.stdout! });
  await new Promise<void>((resolve, reject) => {
    lines.on('line', (line) => {
      output += `${line}\n`;
      if (READY.test(line)) resolve();
    });
    server.once('error', reject);
    server.once('close', (code, signal) => {
      reject(new Error(`redis-server ended with ${String(code ?? signal)}: ${output}`));
    });
  });
}
