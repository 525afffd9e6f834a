import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ratePath, send } from '../../support/http-client.js';
import { bearer, writeTokens } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import type { Fleet, Member } from '../fleet.js';
import { ALL_KEYS } from '../limits.js';

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
  #writtenAt = 0;
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
    const both = this.#text([old, next], '-both');
    if (tear) {
      await fleet.whileNobodyStarts(async () => {
        await tear(both);
        await this.#write(both);
      });
    } else {
      await this.#write(both);
    }
    await this.#isRead(fleet, this.#name('-both'));
    this.#token = next;
    await Promise.all(fleet.places.map((place) => earlierRequestsAreRead(fleet, place)));
    await this.#write(this.#text([next]));
    await this.#isRead(fleet, this.#name());
    await Promise.all(fleet.places.map((place) => expectRevoked(fleet, place, old)));
  }

  #text(token: readonly string[], phase = ''): string {
    const client = {
      name: this.#name(phase),
      token,
      scopes: ['check', 'release'],
      key_patterns: ['counted-\\d', '(queued|released)-\\d'],
    };
    return JSON.stringify([OBSERVER, client]);
  }

  #name(phase = ''): string {
    return `clients-${this.#rotations}${phase}`;
  }

  async #write(text: string): Promise<void> {
    await writeTokens(this.path, text);
    this.#writtenAt = Date.now();
  }

  /** A replica says nothing of the tokens that it starts with. */
  async #isRead(fleet: Fleet, name: string): Promise<void> {
    const hasRead = (who: Member): boolean =>
      who.startedAt > this.#writtenAt || namesIn(who).includes(name);
    await until(() => !fleet.isStarting && fleet.living.every(hasRead));
  }
}

function tokenOf(rotation: number): string {
  return `token-of-clients-${rotation}`;
}

/** The names of the tokens that a replica has taken up last. */
function namesIn({ process }: Member): readonly unknown[] {
  const line = process.log.findLast(({ msg }) => msg === 'tokens reloaded');
  return (line?.names ?? []) as readonly unknown[];
}

/**
 * Resolves when a replica has read all requests that were sent to it before: what comes on a later connection is
 * read later, once it has come. Nothing is left to be read of one that has died.
 */
async function earlierRequestsAreRead(fleet: Fleet, place: number): Promise<void> {
  for (let rounds = 0; rounds < 2; rounds += 1) {
    await send(fleet.urlOf(place), 'GET', '/healthz').catch(() => undefined);
  }
}

/** @throws Error where a replica takes a token that is in the file no more */
async function expectRevoked(fleet: Fleet, place: number, token: string): Promise<void> {
  const path = ratePath(ALL_KEYS[0]!);
  const asked = send(fleet.urlOf(place), 'POST', path, bearer({ token }));
  const answer = await asked.catch(() => undefined);
  if (answer && answer.status !== 401) {
    throw new Error(`replica ${place} answers ${answer.status} to a token that is revoked`);
  }
}
