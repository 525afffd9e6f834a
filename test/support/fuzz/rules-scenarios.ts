import { rename, writeFile } from 'node:fs/promises';

import { send } from '../http-client.js';
import { localPeriods } from '../local-periods.js';
import { parsePrometheusText } from '../prometheus-text.js';
import type { LogLine } from '../replica-process.js';
import { until } from '../until.js';
import { rulesText } from './declared.js';
import type { RawResponse } from './response-reader.js';
import { type DrawnRule, drawRule } from './rules-generator.js';
import { isOfRules } from './rules-log.js';
import { answerOf, pipeline, requestIdOf, type Session } from './scenarios.js';
import { mightyHeaders, stateOf, type Target } from './target.js';

/** What rounding adds to the seconds of a header, and the time that a request takes. */
const SLACK_MILLIS = 5000;

/** The services whose rules are being changed. */
const changing = new Set<Target>();

/**
 * The rules get one more, and lose it. A valid one is in force for its key at once. An invalid one leaves the rules in
 * force, and the service says which field is wrong. The rules of other keys stay the same. While another client changes
 * the rules, requests are sent by them.
 */
export async function moreRules(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const { declared } = target;
  if (!declared || changing.has(target)) return pipeline(session);
  changing.add(target);
  try {
    const key = requests.unmarkedKey();
    const drawn = drawRule(random, key);
    const text = rulesText(drawn.rule);
    const { msg, reason } = await readAgain(target, declared.rulesFile, text);
    const isTaken = msg === 'rules reloaded';
    if (isTaken !== drawn.isValid) session.violated(`${String(msg)}: ${String(reason)}`, text);
    const isStale = (await staleness(target)) === 1;
    if (isStale === drawn.isValid) session.violated(`ratelimit_rules_stale is ${isStale}`, text);
    if (drawn.isValid) await useRule(session, key, drawn);
    else if (!/\]\.\w+ must | must have either /.test(String(reason)))
      session.violated(`no field in ${String(reason)}`, text);
    await readAgain(target, declared.rulesFile, rulesText());
  } finally {
    changing.delete(target);
  }
}

/** Changes the rules file. @returns the line of the service when it has read the file */
async function readAgain({ replica }: Target, path: string, text: string): Promise<LogLine> {
  const before = replica.log.length;
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
  return until(() => replica.log.slice(before).find(isOfRules));
}

async function staleness(target: Target): Promise<number> {
  const { text } = await send(target.replica.url, 'GET', '/metrics', mightyHeaders(target));
  return parsePrometheusText(text).value('ratelimit_rules_stale');
}

/** A check by the rule, after which the key has its calendar, and a release. */
async function useRule(session: Session, key: string, drawn: DrawnRule): Promise<void> {
  const { requests, target } = session;
  const { calendar, isFurther } = drawn;
  const before = Date.now();
  const answer = await answerOf(session, requests.check(key));
  const state = await stateOf(target, key);
  const { Calendar: unit, TimeZone: timeZone } = (isFurther ? state.Limits?.[0] : state) ?? {};
  if (unit !== calendar?.unit || timeZone !== calendar?.timeZone) {
    session.violated(`a calendar ${unit}, ${timeZone}`, JSON.stringify(drawn), answer);
  }
  if (answer && calendar && !endsWithPeriod(answer, drawn, before)) {
    session.violated('a window that does not end with its period', JSON.stringify(drawn), answer);
  }
  // The day may have ended since.
  await answerOf(session, requests.release(key, requestIdOf(answer) ?? 'x', [200, 404]));
  target.keys.released(key);
}

/** Whether the window that an answer tells of ends when the local day, week or month does. */
function endsWithPeriod(
  { headers }: RawResponse,
  { calendar, isFurther }: DrawnRule,
  before: number,
): boolean {
  const { unit, timeZone } = calendar!;
  const ofLimit = headers.get('ratelimit')?.split(',')[isFurther ? 1 : 0];
  const [, seconds] = /;t=(\d+)/.exec(ofLimit ?? '') ?? [];
  const end = before + Number(seconds) * 1000;
  const periodOf = localPeriods(unit, timeZone);
  return periodOf(end + SLACK_MILLIS) !== periodOf(end - SLACK_MILLIS);
}
