import type { Redis } from 'ioredis';

import type { Connections } from '../connections/connections.js';
import type { Library } from './script-loader.js';

/** Loads libraries of functions that a server lacks: at first, after FUNCTION FLUSH, a restart or a failover. */
export class LibraryLoader {
  /** What is under way, by shard and library. */
  readonly #loading = new Map<string, Promise<unknown>>();

  constructor(private readonly connections: Pick<Connections, 'primaries'>) {}

  /**
   * Loads a library on all primaries, not only on the one that lacks it: while a slot moves, another primary than the
   * slot's may have answered. Calls that need it on the same shard share one load, so that no other primary gets the
   * text again for each of them.
   * @param shard of the call that needs the library
   * @returns when this shard has it. Rejects with the error of this shard.
   */
  async load(library: Library, shard: string): Promise<void> {
    const pair = pairOf(shard, library);
    if (!this.#loading.has(pair)) this.#loadOnAll(library);
    await this.#loading.get(pair);
  }

  #loadOnAll(library: Library): void {
    for (const [other, primary] of this.connections.primaries()) {
      // A shard that some call needs reports its failure to that call.
      this.#loadOn(other, primary, library).catch(() => undefined);
    }
  }

  #loadOn(shard: string, primary: Redis, library: Library): Promise<unknown> {
    const pair = pairOf(shard, library);
    const underWay = this.#loading.get(pair);
    if (underWay) return underWay;
    const loading = primary
      .call('FUNCTION', 'LOAD', library.text)
      .catch((error: unknown) => {
        if (!alreadyExists(error)) throw error;
      })
      .finally(() => this.#loading.delete(pair));
    this.#loading.set(pair, loading);
    return loading;
  }
}

function pairOf(shard: string, { name }: Library): string {
  return `${shard} ${name}`;
}

/** Another replica has loaded it. Equal names are equal texts. */
function alreadyExists(error: unknown): boolean {
  return error instanceof Error && /^ERR Library '\w+' already exists/.test(error.message);
}
