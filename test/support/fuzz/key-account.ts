import type { LogLine } from '../replica-process.js';

const CHECK_TARGET = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?\/rate\/([^/?#]+)(?:[?#].*)?$/is;
const CHECKS_IN_BYTES = /\/rate\/([^/?#\s]+)/g;

/** The hits of a key's approvals. */
export interface Counts {
  readonly approved: number;
  /** The hits of the held approvals among them. */
  readonly held: number;
  /** Whether its own limit has fixed windows. */
  readonly isFixed: boolean;
  readonly limits: readonly LimitCounts[];
}

/** What approvals take of a further limit. */
export interface LimitCounts {
  readonly name: string;
  readonly approved: number;
  /** Whether held approvals are among these without ids of their own. */
  readonly countsHolds: boolean;
}

/** The keys that may and that must exist in the end, by the answers. */
export class KeyAccount {
  /** By key: the known approvals. */
  readonly #approved = new Map<string, number>();
  readonly #accepted = new Set<string>();
  readonly #refused = new Set<string>();
  /** Keys of which a vendor's report may count more than their approvals take. */
  readonly #reported = new Set<string>();
  /** How often each key was named on connections with unknown answers. */
  readonly #named = new Map<string, number>();

  /** Records a check with a known answer. */
  answered(key: string, status: number, hits = 1): void {
    if (status === 200) this.#approved.set(key, (this.#approved.get(key) ?? 0) + hits);
    if (status === 200 || status === 429) this.#accepted.add(key);
    // A check with too many hits may have made its key: `readLog`.
    else if (status !== 400 || hits === 1) this.#refused.add(key);
  }

  /** Records a pause or a report that was accepted: it creates its key. */
  changed(key: string): void {
    this.#accepted.add(key);
  }

  /** Whether reports may count of a key, besides its approvals. */
  isReported(key: string): boolean {
    return this.#reported.has(key);
  }

  /** Records a report, whatever its answer will be. */
  reported(key: string): void {
    this.#reported.add(key);
  }

  /** Records that an approval was released. */
  released(key: string): void {
    this.#approved.set(key, (this.#approved.get(key) ?? 0) - 1);
  }

  /** Records bytes with an unknown outcome. */
  sent(bytes: string): void {
    for (const [, encoded] of bytes.matchAll(CHECKS_IN_BYTES)) {
      const key = decode(encoded!);
      if (key === undefined) continue;
      this.#named.set(key, (this.#named.get(key) ?? 0) + 1);
      if (bytes.includes('remaining')) this.#reported.add(key);
    }
  }

  /**
   * @param existing every existing key, and what it counts
   * @param log the complete log of the service, with answers of every class
   * @returns the flaws
   */
  flaws(existing: ReadonlyMap<string, Counts>, log: readonly LogLine[]): string[] {
    const { mayExist, refusals } = readLog(log);
    const flaws: string[] = [];
    for (const key of existing.keys()) {
      const isAccepted = this.#accepted.has(key) || mayExist.has(key);
      const unanswered = (this.#named.get(key) ?? 0) - (refusals.get(key) ?? 0);
      if (isAccepted) continue;
      if (this.#refused.has(key)) flaws.push(`a rejected request created ${JSON.stringify(key)}`);
      else if (unanswered <= 0) flaws.push(`no check asked for ${JSON.stringify(key)}`);
    }
    for (const key of this.#accepted) {
      if (!existing.has(key)) flaws.push(`${JSON.stringify(key)} was answered and does not exist`);
    }
    for (const [key, approved] of this.#approved) {
      const counted = existing.get(key)?.approved ?? 0;
      // The service may still have read bytes of a connection that was cut.
      if (counted !== approved && !this.#named.has(key) && !this.#reported.has(key)) {
        flaws.push(`${JSON.stringify(key)} counts ${counted} approvals, not ${approved}`);
      }
    }
    return flaws;
  }
}

/** A line of the request log about an answer. Other lines have neither request nor response. */
interface RequestLine {
  readonly key?: string;
  readonly req?: { readonly method: string; readonly url: string };
  readonly res?: { readonly statusCode: number };
}

/**
 * The keys of the checks that the service has logged as accepted, and how often it rejected each key. The limiter finds
 * that hits are too many, and may have made the key by then.
 */
function readLog(log: readonly LogLine[]): {
  mayExist: ReadonlySet<string>;
  refusals: ReadonlyMap<string, number>;
} {
  const mayExist = new Set<string>();
  const refusals = new Map<string, number>();
  for (const line of log) {
    const { key, req, res } = line as RequestLine;
    if (req === undefined || res === undefined) {
      // This client disconnected while it waited, or before its approval.
      if (key !== undefined) mayExist.add(key);
      continue;
    }
    if (req.method !== 'GET' && req.method !== 'POST') continue;
    const named = decode(CHECK_TARGET.exec(req.url)?.[1] ?? '%');
    if (named === undefined) continue;
    const hasHits = res.statusCode === 400 && req.url.includes('hits=');
    if (res.statusCode === 200 || res.statusCode === 429 || hasHits) mayExist.add(named);
    else refusals.set(named, (refusals.get(named) ?? 0) + 1);
  }
  return { mayExist, refusals };
}

function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}
