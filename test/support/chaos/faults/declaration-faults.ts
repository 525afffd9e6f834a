import { appendFile, rename, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

import { describeAlgorithm } from '../../../../src/limiter/kinds/kinds.js';
import { until } from '../../until.js';
import {
  asJson,
  asYaml,
  broken,
  type DeclaredRules,
  drawRules,
  drawRulesWithZero,
} from '../declared/rules-text.js';
import type { RulesFile } from '../declared/rules-file.js';
import type { Fleet, Member } from '../fleet.js';
import { WINDOW_MILLIS } from '../limits.js';
import type { Random } from '../random.js';
import { type FaultKind, nothingToMend } from './fault.js';

/** The line of a replica that has found a file broken begins so. */
export const NOT_RELOADED = 'rules not reloaded, the last good ones stay in use';

/** What happens to the file of rules while replicas serve by it. */
export function declarationFaults(fleet: Fleet, rules: RulesFile): FaultKind[] {
  return [
    rulesAreReplaced(fleet, rules),
    rulesAreOverwritten(fleet, rules),
    rulesAreBroken(fleet, rules),
  ];
}

/** How long rules are the only ones in force, so that there are windows of which nobody has known others. */
function inForceMillis(random: Random): number {
  return random.whole(WINDOW_MILLIS, 6 * WINDOW_MILLIS);
}

/** Now and then a key is turned off by it for a while. */
function rulesAreReplaced(fleet: Fleet, rules: RulesFile): FaultKind {
  return {
    name: 'rules replaced',
    draw: (random) => {
      const next = drawRulesWithZero(random, rules.nextNumber());
      const after = drawRules(random, rules.nextNumber());
      const format = random.pick([asJson, asYaml]);
      const turnsOff = Object.values(next.limits).some(({ maximum }) => maximum === 0);
      return {
        target: describe(next),
        scope: 'rules',
        millis: inForceMillis(random),
        begin: () => replaceRules(fleet, rules, next, format(next)),
        end: turnsOff ? () => replaceRules(fleet, rules, after, format(after)) : nothingToMend,
      };
    },
  };
}

/** What a replica may read in between is the beginning of the right text. */
function rulesAreOverwritten(fleet: Fleet, rules: RulesFile): FaultKind {
  return {
    name: 'rules overwritten in place',
    draw: (random) => {
      const next = drawRules(random, rules.nextNumber());
      const text = asJson(next);
      const half = random.whole(0, text.length - 1);
      const millis = random.whole(0, 2000);
      return {
        target: `${describe(next)}, ${half} characters of it ${millis} ms before`,
        scope: 'rules',
        millis: inForceMillis(random),
        begin: () =>
          rules.change(fleet, next, text, {
            breakFirst: () => tear(rules.path, text, half, millis),
            write: () => appendFile(rules.path, text.slice(half)),
          }),
        end: nothingToMend,
      };
    },
  };
}

/** They are wrong until every replica has said so, and for some time more. */
function rulesAreBroken(fleet: Fleet, rules: RulesFile): FaultKind {
  return {
    name: 'rules broken',
    draw: (random) => {
      const next = drawRules(random, rules.nextNumber());
      const wrong = broken(random, next);
      const millis = random.whole(0, 1000);
      return {
        target: `${describe(next)}, after ${JSON.stringify(wrong.slice(0, 40))}`,
        scope: 'rules',
        millis: inForceMillis(random),
        begin: () =>
          rules.change(fleet, next, asJson(next), {
            breakFirst: async () => {
              const brokenAt = Date.now();
              await replaceFile(rules.path, wrong);
              await until(() => fleet.living.every((who) => hasSaidSo(who, brokenAt)));
              await delay(millis);
            },
            write: () => replaceFile(rules.path, asJson(next)),
          }),
        end: nothingToMend,
      };
    },
  };
}

function replaceRules(
  fleet: Fleet,
  rules: RulesFile,
  declared: DeclaredRules,
  text: string,
): Promise<void> {
  return rules.change(fleet, declared, text, { write: () => replaceFile(rules.path, text) });
}

function describe({ limits }: DeclaredRules): string {
  return Object.entries(limits)
    .map(([name, { maximum, algorithm }]) => `${name} ${maximum} (${describeAlgorithm(algorithm)})`)
    .join(', ');
}

function hasSaidSo({ process }: Member, since: number): boolean {
  return process.log.some(
    ({ msg, time }) => String(msg).startsWith(NOT_RELOADED) && Date.parse(String(time)) >= since,
  );
}

async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

/** Leaves the beginning of a text in a file for some time. */
async function tear(path: string, text: string, length: number, millis: number): Promise<void> {
  await writeFile(path, text.slice(0, length));
  await delay(millis);
}
