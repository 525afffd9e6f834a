import { send } from '../http-client.js';
import { bearer } from '../tokens.js';
import { parse } from './answer-rules.js';
import { mayTouch } from './answer-to.js';
import { type Caller, SORTS, STARTS, TOKENS, TREATMENTS } from './declared.js';
import { answerOf, requestIdOf, type Session } from './scenarios.js';
import { stateOf } from './target.js';

const SET_MAXIMUM = 3;

/** Checks of one key beyond its maximum, one after the other. */
export async function limits(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const sort = random.pick(SORTS);
  if (sort === 'stranger' && target.declared?.refusesStrangers) return;
  const { maximum: ruled, isShadow = false } = TREATMENTS[sort];
  const maximum = ruled ?? SET_MAXIMUM;
  const key = requests.freshKey(sort);
  for (let approved = 0; approved < maximum + 2; approved += 1) {
    const isOver = approved >= maximum;
    const query = ruled === undefined ? `maxRequests=${SET_MAXIMUM}` : '';
    const statuses = isOver && !isShadow ? [429] : [200];
    const answer = await answerOf(session, requests.check(key, query, statuses));
    const shadow = answer?.headers.get('x-sluice-shadow');
    if (shadow !== (isOver && isShadow ? 'denied' : undefined)) {
      session.violated(`check ${approved} says ${shadow ?? 'nothing'} of the shadow`, key, answer);
    }
  }
  const { NumApprovedThisWindow: approved, NumDeniedThisWindow: denied } = await stateOf(
    target,
    key,
  );
  if (approved !== maximum || denied !== 2) {
    session.violated(`${approved} approved and ${denied} denied, not ${maximum} and 2`, key);
  }
}

/** Checks, releases and corrections of one key with further limits, one after the other, as an account has them. */
export async function furtherLimits(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const key = requests.freshKey('limited');
  const hitsOf = new Map<string, number>();
  let tokens = 0;
  let starts = 0;
  for (let left = random.whole(4, 12); left > 0; left -= 1) {
    const [id] = [...hitsOf.keys()].slice(-random.whole(1, 3));
    if (id === undefined || random.chance(0.6)) {
      const hits = random.whole(1, random.chance(0.1) ? TOKENS.maximum + 1 : 3);
      const denying = [
        ...(tokens + hits > TOKENS.maximum ? [TOKENS.name] : []),
        ...(starts >= STARTS.maximum ? [STARTS.name] : []),
      ];
      const isTooMany = hits > TOKENS.maximum;
      const status = isTooMany ? 400 : denying.length > 0 ? 429 : 200;
      const query = `hits=${hits}${random.chance(0.3) ? '&holdMillis=7200000' : ''}`;
      const answer = await answerOf(session, requests.check(key, query, [status]));
      const told = answer && parse(answer.body)?.limit;
      // Of several, the limit that has room last.
      if (told !== (status === 429 ? denying[0] : undefined)) {
        session.violated(`denied by ${JSON.stringify(told)}, not ${denying[0]}`, key, answer);
      }
      const approved = requestIdOf(answer);
      if (approved === undefined) continue;
      hitsOf.set(approved, hits);
      target.keys.corrected(key, hits - 1);
      tokens += hits;
      starts += 1;
    } else if (random.chance(0.5)) {
      await answerOf(session, requests.release(key, id, [200]));
      await answerOf(session, requests.release(key, id, [404]));
      target.keys.corrected(key, -hitsOf.get(id)!);
      tokens -= hitsOf.get(id)!;
      hitsOf.delete(id);
    } else {
      const hits = random.whole(1, 4);
      await answerOf(session, requests.amendment(key, id, `hits=${hits}`, [200]));
      target.keys.corrected(key, hits - hitsOf.get(id)!);
      tokens += hits - hitsOf.get(id)!;
      hitsOf.set(id, hits);
    }
  }
  const { Limits = [] } = await stateOf(target, key);
  const counted = Limits.map(
    ({ Name, NumApprovedThisWindow }) => `${Name} ${NumApprovedThisWindow}`,
  );
  const expected = [`${TOKENS.name} ${tokens}`, `${STARTS.name} ${starts}`];
  if (counted.join() !== expected.join()) {
    session.violated(`${counted.join()} counted, not ${expected.join()}`, key);
  }
}

/** Callers send every request about a foreign key: they learn and change nothing. */
export async function trespass(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const callers = target.declared?.callers ?? [];
  const sort = random.pick(['open', 'fixed', 'capped', 'few', 'shadow'] as const);
  const [key, unused] = [requests.freshKey(sort), requests.freshKey(sort)];
  const strangers = callers.filter((caller) => !mayTouch(caller, key));
  const requestId = requestIdOf(await answerOf(session, requests.check(key))) ?? '';
  const before = JSON.stringify(await stateOf(target, key));
  for (const caller of strangers) {
    const [ofKey, ofUnused] = [key, unused].map((each) =>
      requests.allOf(caller, each, requestId).map((request) => answerOf(session, request)),
    );
    const answers = await Promise.all(ofKey!);
    for (const [i, answer] of (await Promise.all(ofUnused!)).entries()) {
      const told = [answers[i], answer].map(
        (each) => each && `${each.status} ${errorIn(each.body)}`,
      );
      if (told[0] !== told[1]) session.violated(`${caller.name} learns of a key`, key, answers[i]);
    }
    await expectOwnKeys(session, caller);
  }
  const after = JSON.stringify(await stateOf(target, key));
  if (after !== before) session.violated(`a stranger made ${before} ${after}`, key);
}

/** The list of keys has only the caller's keys. */
async function expectOwnKeys({ target, violated }: Session, caller: Caller): Promise<void> {
  if (!caller.scopes.includes('debug')) return;
  const { status, json } = await send(target.replica.url, 'GET', '/debug', bearer(caller));
  const keys = status === 200 ? Object.keys((json() as { Instances: object }).Instances) : [];
  const others = keys.filter((key) => !mayTouch(caller, key));
  if (status !== 200 || others.length > 0) {
    violated(`${caller.name} is told ${status} and of ${JSON.stringify(others)}`, '/debug');
  }
}

function errorIn(body: string): string {
  return JSON.stringify(parse(body)?.error);
}
