import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { uniqueKey } from './unique-key.js';

const REPLACE_DNS = new URL('replace-dns.mjs', import.meta.url);

/** The DNS of replicas, under a test's control. */
export class ReplicaDns {
  readonly #file: string;

  /** @param folder for its file */
  constructor(folder: string) {
    this.#file = join(folder, uniqueKey());
    this.says({});
  }

  /** The settings for replicas that use it. */
  get settings(): Readonly<Record<string, string>> {
    return { NODE_OPTIONS: `--import ${REPLACE_DNS.href}`, DNS_FILE: this.#file };
  }

  /** @param answers for each name an address, the code of an error, or `hangs`; other names are not found */
  says(answers: Readonly<Record<string, string>>): void {
    // A replica may read the file at the same time.
    writeFileSync(`${this.#file}.new`, JSON.stringify(answers));
    renameSync(`${this.#file}.new`, this.#file);
  }
}
