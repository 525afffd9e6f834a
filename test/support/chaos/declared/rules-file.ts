import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { parseRules } from '../../../../src/rules/parse-rules.js';
import { RuleSet } from '../../../../src/rules/rule-set.js';
import { defaultPolicy } from '../../../../src/rules/rules.js';
import { ratePath, send } from '../../http-client.js';
import { DEFAULTS } from '../../settings.js';
import { until } from '../../until.js';
import type { Fleet, Member } from '../fleet.js';
import { ALL_KEYS, STORE_TIMEOUT_MILLIS } from '../limits.js';
import type { Random } from '../random.js';
import { LimitsInForce } from './limits-in-force.js';
import { asJson, type DeclaredRules, drawRules } from './rules-text.js';

/** By then a replica has given up a call, and a slow link has delivered it. */
const CALLS_OVER_MILLIS = STORE_TIMEOUT_MILLIS + 200;

/** How a text comes into the file. */
export interface Rewriting {
  /** Leaves the file broken. */
  readonly breakFirst?: () => Promise<void>;
  /** Makes the file the text. */
  readonly write: () => Promise<void>;
}

/** The rules of a round's replicas, in a file that changes. */
export class RulesFile {
  readonly path: string;
  readonly limits: LimitsInForce;
  #drawn = 0;

  constructor(folder: string, random: Random) {
    this.path = join(folder, 'rules');
    const first = drawRules(random, this.nextNumber());
    this.limits = new LimitsInForce(first.limits);
    writeFileSync(this.path, asJson(first));
  }

  /** A number that no other rules have. */
  nextNumber(): number {
    this.#drawn += 1;
    return this.#drawn;
  }

  /** Changes the rules, and resolves when the old ones decide about nothing any more. */
  async change(
    fleet: Fleet,
    declared: DeclaredRules,
    text: string,
    { breakFirst, write }: Rewriting,
  ): Promise<void> {
    let isEverywhere!: () => void;
    const writeNow = (): Promise<void> => {
      isEverywhere = this.limits.change(declared.limits);
      return write();
    };
    if (breakFirst) {
      await fleet.whileNobodyStarts(async () => {
        await breakFirst();
        await writeNow();
      });
    } else {
      await writeNow();
    }
    const digest = digestOf(text);
    await until(() => !fleet.isStarting && fleet.living.every((who) => digestIn(who) === digest));
    await delay(CALLS_OVER_MILLIS);
    await Promise.all(ALL_KEYS.map((key) => this.#isTaken(fleet, key)));
    isEverywhere();
  }

  /** A key takes new limits with its next check. What came to Redis before the first has run before the second. */
  async #isTaken(fleet: Fleet, key: string): Promise<void> {
    for (let checks = 0; checks < 2; checks += 1) {
      let index = 0;
      let last = '';
      const isDecided = async (): Promise<boolean> => {
        index = (index + 1) % fleet.size;
        const asked = send(fleet.urlOf(index), 'POST', ratePath(key));
        const { status, text } = await asked.catch((error: unknown) => ({
          status: undefined,
          text: String(error),
        }));
        last = `${status} ${text}`;
        return status === 200 || status === 429;
      };
      await until(isDecided).catch((cause: unknown) => {
        throw new Error(`no replica decides about ${key}: ${last}`, { cause });
      });
    }
  }
}

function digestOf(text: string): string {
  return new RuleSet(parseRules(text), defaultPolicy(DEFAULTS)).digest;
}

/** The digest of the rules that a replica has said it goes by. */
function digestIn({ process }: Member): unknown {
  return process.log.findLast(({ msg }) => msg === 'rules read' || msg === 'rules reloaded')
    ?.digest;
}
