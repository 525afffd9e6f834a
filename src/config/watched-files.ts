import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';

import type { Logger } from 'pino';

import { type NamedFile, SettingsError, unreadable } from './named-file.js';

const POLL_MILLIS = 1000;

/** The format of one or more files that belong together. */
export interface FileFormat<T> {
  /** The name of their content for the log, such as `tokens`. */
  readonly what: string;
  readonly files: readonly NamedFile[];
  /**
   * @param contents the contents of `files`, in their order
   * @throws SettingsError if the contents are wrong
   */
  parse(contents: readonly Buffer[]): T | Promise<T>;
  /** The part of a value that the log may show. */
  describe(value: T): object;
  /**
   * The value to use after two reads in a row have found a file missing or empty. One read may fall between two steps
   * of a program that writes the file. Without this function the last valid value stays in use.
   */
  readonly whenGone?: (last: T) => T;
}

/**
 * The value of some files, kept up to date. Invalid contents are logged once, and the last valid value stays in use.
 *
 * The contents are compared every second, since events are unreliable: Kubernetes changes a mounted file by replacing a
 * symbolic link above it, which a watch on the file does not notice.
 */
export class WatchedFiles<T> {
  readonly #listeners: ((value: T) => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Reads follow one another: of two at a time, the later could return the older value. */
  #lastCheck = Promise.resolve();
  #state: 'good' | 'stale' | 'gone' = 'good';
  /** The last read has found a file missing or empty. */
  #wasGone = false;

  private constructor(
    private readonly format: FileFormat<T>,
    private readonly logger: Logger,
    private value: T,
    private fingerprint: string,
  ) {}

  /** @throws SettingsError if a file can't be read, or its content is wrong */
  static async open<T>(
    format: FileFormat<T>,
    logger: Logger,
    pollMillis = POLL_MILLIS,
  ): Promise<WatchedFiles<T>> {
    const contents = await readAll(format);
    const value = await parse(format, contents);
    const watched = new WatchedFiles(format, logger, value, fingerprintOf(contents));
    await warnOfReadableSecrets(format.files, logger);
    watched.#schedule(pollMillis);
    return watched;
  }

  /** The last valid value of the files, or the value for missing files. */
  get current(): T {
    return this.value;
  }

  /** The contents are invalid now, and the last valid value stays in use. */
  get isStale(): boolean {
    return this.#state === 'stale';
  }

  /** A file is missing or empty, and the value for that is in use. */
  get isGone(): boolean {
    return this.#state === 'gone';
  }

  onReload(listener: (value: T) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the files at once. */
  check(): Promise<void> {
    this.#lastCheck = this.#lastCheck.then(() => this.#check());
    return this.#lastCheck;
  }

  async #check(): Promise<void> {
    const contents = await readAll(this.format);
    if (this.#isClosed) return;
    this.#lookForGone(contents);
    const fingerprint = fingerprintOf(contents);
    if (fingerprint === this.fingerprint) return;
    this.fingerprint = fingerprint;
    await this.#reload(contents);
    await warnOfReadableSecrets(this.format.files, this.logger);
  }

  #lookForGone(contents: readonly Reading[]): void {
    const { what, whenGone } = this.format;
    if (whenGone === undefined) return;
    const isGone = contents.some((reading) => !Buffer.isBuffer(reading) && reading.isGone);
    if (isGone && this.#wasGone && !this.isGone) {
      this.#state = 'gone';
      this.#use(whenGone(this.value));
      this.logger.error(`${what} still missing or empty, none are in use until they are back`);
    }
    this.#wasGone = isGone;
  }

  async #reload(contents: readonly Reading[]): Promise<void> {
    const { what } = this.format;
    let value: T;
    try {
      value = await parse(this.format, contents);
    } catch (error) {
      if (!this.isGone) this.#state = 'stale';
      const reason = (error as Error).message;
      this.logger.error({ reason }, `${what} not reloaded, ${this.#inUse()}`);
      return;
    }
    if (this.#isClosed) return;
    this.#state = 'good';
    this.#use(value);
    this.logger.info(this.format.describe(value), `${what} reloaded`);
  }

  /** What stays in use with invalid files, for the end of a sentence. */
  #inUse(): string {
    if (this.isGone) return 'none are in use';
    return `the last good ones stay in use${this.#wasGone ? ' until the next look' : ''}`;
  }

  #use(value: T): void {
    this.value = value;
    for (const listener of this.#listeners) listener(value);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #schedule(pollMillis: number): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      void this.check().finally(() => this.#schedule(pollMillis));
    }, pollMillis).unref();
  }
}

/**
 * The content of a file, or why it has none. Only a file that is missing or empty is gone. Other failures, such as too many
 * open files, say nothing about the file.
 */
type Reading = Buffer | { readonly error: SettingsError; readonly isGone: boolean };

function readAll<T>({ files, whenGone }: FileFormat<T>): Promise<Reading[]> {
  return Promise.all(
    files.map(async ({ variable, path }) => {
      try {
        const content = await readFile(path);
        if (whenGone === undefined || content.toString('latin1').trim() !== '') return content;
        const got = `${JSON.stringify(path)} (empty)`;
        return { error: new SettingsError(variable, got, 'a file with content'), isGone: true };
      } catch (error) {
        const { code = '' } = error as NodeJS.ErrnoException;
        const isGone = code === 'ENOENT' || code === 'ENOTDIR';
        return { error: unreadable(variable, path, error), isGone };
      }
    }),
  );
}

async function parse<T>(format: FileFormat<T>, readings: readonly Reading[]): Promise<T> {
  const contents = readings.map((reading) => {
    if (Buffer.isBuffer(reading)) return reading;
    throw reading.error;
  });
  return format.parse(contents);
}

/** Identifies contents without keeping them, since they may be secret. */
function fingerprintOf(readings: readonly Reading[]): string {
  return readings
    .map((reading) => {
      if (!Buffer.isBuffer(reading)) return reading.error.message;
      return createHash('sha256').update(reading).digest('base64');
    })
    .join('\n');
}

const OTHERS_MAY_READ = 0o004;
const PERMISSIONS = 0o777;

/** Warns of each file with secrets that every user of the machine may read. */
async function warnOfReadableSecrets(files: readonly NamedFile[], logger: Logger): Promise<void> {
  // Windows has other permissions.
  if (process.platform === 'win32') return;
  for (const { variable, path, isSecret } of files) {
    if (isSecret !== true) continue;
    // None for a file that is missing: its reader says so.
    const mode = await stat(path).then(
      (stats) => stats.mode & PERMISSIONS,
      () => 0,
    );
    if ((mode & OTHERS_MAY_READ) === 0) continue;
    logger.warn(
      { variable, path, mode: `0${mode.toString(8)}` },
      `every user of this machine can read the file of ${variable}: remove that right, as by chmod o-r`,
    );
  }
}
