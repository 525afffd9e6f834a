import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

import type { Logger } from 'pino';

import { unreadable } from './named-file.js';
import { SettingsError } from './settings-error.js';

const POLL_MILLIS = 1000;

/** A file, and the setting that names it. */
export interface NamedFile {
  readonly variable: string;
  readonly path: string;
}

/** The format of one or more files that belong together. */
export interface FileFormat<T> {
  /** The name of their content for the log, such as `tokens`. */
  readonly what: string;
  readonly files: readonly NamedFile[];
  /**
   * @param contents the contents of `files`, in their order
   * @throws SettingsError where the contents are wrong
   */
  parse(contents: readonly Buffer[]): T;
  /** The part of a value that the log may show. */
  describe(value: T): object;
}

/**
 * The value of some files, kept up to date. Wrong contents are logged once, and the contents before stay in
 * use.
 *
 * The contents are compared every second, since events are unreliable: Kubernetes changes a mounted file by
 * exchanging a symbolic link above it, which a watch on the file does not notice.
 */
export class WatchedFiles<T> {
  readonly #listeners: ((value: T) => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Of two reads at a time the later could give the older value. */
  #lastCheck = Promise.resolve();
  #isStale = false;

  private constructor(
    private readonly format: FileFormat<T>,
    private readonly logger: Logger,
    private value: T,
    private fingerprint: string,
  ) {}

  /** @throws SettingsError where a file can't be read, or its content is wrong */
  static async open<T>(
    format: FileFormat<T>,
    logger: Logger,
    pollMillis = POLL_MILLIS,
  ): Promise<WatchedFiles<T>> {
    const contents = await readAll(format.files);
    const value = parse(format, contents);
    const watched = new WatchedFiles(format, logger, value, fingerprintOf(contents));
    watched.#schedule(pollMillis);
    return watched;
  }

  /** The value of the files when they were last right. */
  get current(): T {
    return this.value;
  }

  /** The files have changed into wrong ones, and the value before stays in use. */
  get isStale(): boolean {
    return this.#isStale;
  }

  /** Calls `listener` with each new value of the files. */
  onReload(listener: (value: T) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads the files now, before the next second is over. */
  check(): Promise<void> {
    this.#lastCheck = this.#lastCheck.then(() => this.#check());
    return this.#lastCheck;
  }

  async #check(): Promise<void> {
    const contents = await readAll(this.format.files);
    const fingerprint = fingerprintOf(contents);
    if (fingerprint === this.fingerprint || this.#isClosed) return;
    this.fingerprint = fingerprint;
    const { what } = this.format;
    try {
      this.value = parse(this.format, contents);
      this.#isStale = false;
    } catch (error) {
      this.#isStale = true;
      const reason = (error as Error).message;
      this.logger.error({ reason }, `${what} not reloaded, the last good ones stay in use`);
      return;
    }
    for (const listener of this.#listeners) listener(this.value);
    this.logger.info(this.format.describe(this.value), `${what} reloaded`);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #schedule(pollMillis: number): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      void this.check().finally(() => {
        this.#schedule(pollMillis);
      });
    }, pollMillis).unref();
  }
}

/** The content of a file, or why there is none. */
type Reading = Buffer | SettingsError;

function readAll(files: readonly NamedFile[]): Promise<Reading[]> {
  return Promise.all(
    files.map(async ({ variable, path }) => {
      try {
        return await readFile(path);
      } catch (error) {
        return unreadable(variable, path, error);
      }
    }),
  );
}

function parse<T>(format: FileFormat<T>, readings: readonly Reading[]): T {
  const contents = readings.map((reading) => {
    if (reading instanceof SettingsError) throw reading;
    return reading;
  });
  return format.parse(contents);
}

/** Identifies contents without keeping them: they may be secret. */
function fingerprintOf(readings: readonly Reading[]): string {
  return readings
    .map((reading) => {
      if (reading instanceof SettingsError) return reading.message;
      return createHash('sha256').update(reading).digest('base64');
    })
    .join('\n');
}
