import { send } from '../http-client.js';
import { bearer } from '../tokens.js';
import { parse } from './answer-rules.js';
import { mayTouch } from './answer-to.js';
import type { Caller } from './declared.js';
import { answerOf, requestIdOf, type Session } from './scenarios.js';
import { stateOf } from './target.js';

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
