import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ratePath, send } from '../../http-client.js';
import { bearer, writeTokens } from '../../tokens.js';
import type { Fleet, Member } from '../fleet.js';
import { ALL_KEYS } from '../limits.js';
import { lastWithin } from '../within.js';

/** A replica that stands still reads nothing meanwhile. */
const READ_WITHIN_MILLIS = 30_000;

/** Of the round itself: never changed, and for every key. */
const OBSERVER = {
  name: 'observer',
  token: 'token-of-the-observer',
  scopes: ['check', 'debug'],
};

/** The tokens of a round's callers, in a file that changes. */
export class TokensFile {
  readonly path: string;
  #rotations = 0;
  #token = tokenOf(0);

  constructor(folder: string) {
    this.path = join(folder, 'tokens.json');
    writeFileSync(this.path, this.#text([this.#token]));
  }

  /** The header of a client of the load. */
  readonly client = (): Readonly<Record<string, string>> => bearer({ token: this.#token });

  /** The header of who looks at the replicas. */
  readonly observer = (): Readonly<Record<string, string>> => bearer(OBSERVER);

  /**
   * Gives the clients another token as docs/security.md says, and sees that the old one is good for nothing then.
   * @param tear leaves the file broken before
   */
  async rotate(fleet: Fleet, tear?: (text: string) => Promise<void>): Promise<void> {
    this.#rotations += 1;
    const [old, next] = [this.#token, tokenOf(this.#rotations)];
    const both = this.#text([old, next]);
    if (tear) {
      await fleet.whileNobodyStarts(async () => {
        await tear(both);
        await writeTokens(this.path, both);
      });
    } else {
      await writeTokens(this.path, both);
    }
    await untilGood(fleet, next, true);
    this.#token = next;
    await Promise.all(fleet.indexes.map((index) => earlierRequestsAreRead(fleet, index)));
    await writeTokens(this.path, this.#text([next]));
    await untilGood(fleet, old, false);
  }

  #text(token: readonly string[]): string {
    const client = {
      name: 'clients',
      token,
      scopes: ['check', 'release'],
      key_patterns: ['counted-\\d', '(queued|released|limited|ordered)-\\d'],
    };
    return JSON.stringify([OBSERVER, client]);
  }
}

function tokenOf(rotation: number): string {
  return `token-of-clients-${rotation}`;
}

/** Resolves when a token is good, or good for nothing, at every replica. */
async function untilGood(fleet: Fleet, token: string, isGood: boolean): Promise<void> {
  const isTaken = await lastWithin(
    READ_WITHIN_MILLIS,
    async () => {
      // One that starts may have read the file before.
      if (fleet.isStarting) return false;
      const taken = await Promise.all(fleet.living.map((who) => takes(who, token)));
      return taken.every((is) => is === isGood);
    },
    (is) => is,
  );
  if (!isTaken) throw new Error(`a token is ${isGood ? 'not taken' : 'still taken'} by a replica`);
}

/** Whether a replica takes a token; undefined where it gives no answer. */
async function takes({ process }: Member, token: string): Promise<boolean | undefined> {
  const path = `${ratePath(ALL_KEYS[0]!)}/no-request`;
  const asked = send(process.url, 'DELETE', path, bearer({ token }));
  return asked.then(
    ({ status }) => status !== 401,
    () => undefined,
  );
}

/**
 * Resolves when a replica has read all requests that were sent to it before: what comes on a later connection is
 * read later, once it has come. Nothing is left to be read of one that has died.
 */
async function earlierRequestsAreRead(fleet: Fleet, index: number): Promise<void> {
  for (let rounds = 0; rounds < 2; rounds += 1) {
    await send(fleet.urlOf(index), 'GET', '/healthz').catch(() => undefined);
  }
}
