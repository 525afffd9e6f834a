import { Random } from '../chaos/random.js';
import { within } from '../chaos/within.js';
import { send } from '../http-client.js';
import { bearer } from '../tokens.js';
import { parse } from './answer-rules.js';
import { mayTouch } from './answer-to.js';
import { manyChecks, noCall } from './bulk-scenarios.js';
import type { Caller } from './declared.js';
import { RawClient } from './raw-client.js';
import { RequestGenerator } from './request-generator.js';
import type { RawResponse } from './response-reader.js';
import {
  abandoned,
  answerOf,
  expectStatus,
  mutation,
  oddTarget,
  pileUp,
  pipeline,
  queue,
  report,
  requestIdOf,
  type Session,
} from './scenarios.js';
import { flawsAtTheEnd, mightyHeaders, stateOf, type Target, vitals } from './target.js';

/** The numbers of a run, and its violations. */
export interface FuzzReport {
  /** By name. */
  readonly scenarios: Readonly<Record<string, number>>;
  /** Answers by status. */
  readonly statuses: Readonly<Record<number, number>>;
  readonly seconds: number;
  readonly violations: readonly string[];
}

const CLIENTS = 6;
/** Of each client, also on a slow machine. With these, each status comes that the tests expect. */
const LEAST_SCENARIOS = 20;
const SCENARIO_TIMEOUT_MILLIS = 60_000;
const MAX_VIOLATIONS = 20;
const SHOWN_BYTES = 2000;
/** A scenario that is here more often runs more often. */
const SCENARIOS = [
  pipeline, pipeline, pipeline, pipeline, mutation, mutation, mutation, queue, report, pileUp, abandoned, oddTarget,
  manyChecks, manyChecks, noCall, bodyParameters,
]; // prettier-ignore
/** For a service with rules and tokens. */
const DECLARED_SCENARIOS = [...SCENARIOS, trespass];

/** Sends requests that follow from the seed to the service for `seconds` at least, and checks the answers and the outcome. */
export async function runFuzz(target: Target, seed: number, seconds: number): Promise<FuzzReport> {
  const scenarios: Record<string, number> = {};
  const statuses: Record<number, number> = {};
  const violations: string[] = [];
  const before = await vitals(target);
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1000;

  const play = async (client: number): Promise<void> => {
    for (let number = 0; number < LEAST_SCENARIOS || performance.now() < endsAt; number += 1) {
      if (violations.length >= MAX_VIOLATIONS) return;
      const name = `s${seed}-c${client}-${number}`;
      const random = new Random(seed).fork(name);
      const scenario = random.pick(target.declared ? DECLARED_SCENARIOS : SCENARIOS);
      scenarios[scenario.name] = (scenarios[scenario.name] ?? 0) + 1;
      const clients: RawClient[] = [];
      const session: Session = {
        target,
        random,
        requests: new RequestGenerator(name, random, target.declared),
        open: async (isHead) => {
          const opened = await RawClient.open(target.replica.url, isHead);
          clients.push(opened);
          return opened;
        },
        saw: (status) => (statuses[status] = (statuses[status] ?? 0) + 1),
        violated: (what, sent, response) =>
          violations.push(describe(`${name} ${scenario.name}: ${what}`, sent, response)),
      };
      try {
        await within(SCENARIO_TIMEOUT_MILLIS, 'a scenario', () => scenario(session));
      } catch (error) {
        const sent = clients.map((client) => client.sent).join('\n');
        violations.push(describe(`${name} ${scenario.name}: ${String(error)}`, sent));
        await Promise.all(clients.map((client) => client.part('destroy')));
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, client) => play(client)));
  const elapsed = (performance.now() - startedAt) / 1000;
  try {
    violations.push(...(await flawsAtTheEnd(target, before)));
  } catch (error) {
    violations.push(`in the end: ${String(error)}; on stderr: ${target.replica.stderr}`);
  }
  return { scenarios, statuses, seconds: elapsed, violations };
}

function describe(what: string, sent: string, response?: RawResponse): string {
  const lines = [what, `  sent ${shown(sent)}`];
  if (response) {
    const { status, headers, body } = response;
    const answer = { status, headers: Object.fromEntries(headers), body };
    lines.push(`  got ${shown(answer)}`);
  }
  return lines.join('\n');
}

/** A text with repetitions shortened. */
function shown(what: unknown): string {
  return JSON.stringify(what)
    .replace(/(.{1,10}?)\1{8,}/gs, '$1...')
    .slice(0, SHOWN_BYTES);
}

const TYPES = ['application/json', 'application/x-www-form-urlencoded', 'APPLICATION/JSON;x=y'];
const WITHOUT_PARAMETERS = ['', '{}', ' { }\r\n', '[]', 'null'];
const WITH_PARAMETERS = [
  '{"hits":5}', 'hits=5', '{', '[{}]', '\0', '\xff', ' '.repeat(5000), '{}'.repeat(5000),
]; // prettier-ignore

/** A check whose body may have parameters in it, perhaps with a request before it. */
async function bodyParameters(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const isMistaken = random.chance(0.5);
  const body = random.pick(isMistaken ? WITH_PARAMETERS : WITHOUT_PARAMETERS);
  const key = requests.freshKey();
  const { Authorization: token } = mightyHeaders(target);
  const client = await session.open();
  const before = random.chance(0.5) ? 'GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n' : '';
  const lines = [
    `${random.pick(['GET', 'POST'])} /rate/${encodeURIComponent(key)} HTTP/1.1`,
    'Host: t',
    `Content-Type: ${random.pick(TYPES)}`,
    ...(token ? [`Authorization: ${token}`] : []),
    `Content-Length: ${body.length}`,
  ];
  await client.send(`${before}${lines.join('\r\n')}\r\n\r\n${body}`, random);
  const index = before === '' ? 0 : 1;
  await client.answers(index + 1);
  const statuses = isMistaken ? [400] : [200];
  expectStatus(session, client, { statuses, checkOf: key, isHead: false }, index);
  await client.part(random.pick(['half-close', 'reset', 'destroy']));
}

/** Callers send every request about a foreign key: they learn and change nothing. */
async function trespass(session: Session): Promise<void> {
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
