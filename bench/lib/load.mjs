// The load, by wrk if it is installed and by autocannon otherwise. Answers are checked: a run with a wrong answer
// measures nothing, and fails.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createHistogram } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import autocannon from 'autocannon';

import { callOf, isRight, SINGLE_CHECK } from './asking.mjs';

export const CONNECTIONS = 64;

const APPROVAL = /^\{"request_id":"([0-9a-f-]{36})"\}$/;
const WRK_SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));
const HAS_WRK = !spawnSync('wrk', ['--version']).error;

export const GENERATOR = HAS_WRK ? 'wrk' : 'autocannon';

/**
 * As many checks as callers can make if each sends the next one as soon as it is answered.
 * @param {{name: string, keys: number, seconds: number, connections?: number, mayRefuse?: boolean, inOrder?: boolean,
 *   perSecond?: number, asking?: object}} load keys are called `<name>-<1 to keys>` and drawn at random;
 *   `inOrder`: keys come one after the other instead; `mayRefuse`: a 429 is also a right answer;
 *   `perSecond`: callers pause, so that they make about this many checks; `asking`: a check on the wire
 */
export async function saturate(server, load) {
  const asking = load.asking ?? server.asking ?? SINGLE_CHECK;
  const result = await (HAS_WRK ? byWrk : byAutocannon)(server, { ...load, asking });
  if (result.wrong > 0 || result.failed > 0 || result.answers === 0) {
    throw new Error(
      `${server.name}: ${result.wrong} of ${result.answers} answers are wrong, ` +
        `${result.failed} failed. ${result.example}`,
    );
  }
  const answers = result.answers * (asking.checks ?? 1);
  return { ...result, answers, perSecond: answers / result.seconds };
}

async function byWrk(server, load) {
  const { name, keys, seconds, mayRefuse = false, inOrder = false, perSecond, asking } = load;
  const { connections = CONNECTIONS } = load;
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', WRK_SCRIPT];
  const { path, body = '', checks = 1, approved, refused } = asking;
  const pauseMillis = perSecond === undefined ? 0 : Math.round((1000 * connections) / perSecond);
  const flags = [mayRefuse && refused !== undefined, inOrder].map((flag) => (flag ? '1' : '0'));
  const answers = [approved, refused].flatMap((answer) => [answer?.text, answer?.length]);
  const words = [name, keys, ...flags, path, body, checks, ...answers, pauseMillis];
  const wrk = spawn('wrk', [...options, server.url, '--', ...words.map((word) => `${word ?? ''}`)]);
  const [output] = await Promise.all([text(wrk.stdout), once(wrk, 'close')]);
  const result = /^RESULT (.*)$/m.exec(output);
  if (!result) throw new Error(`wrk measured nothing: ${output}`);
  return { ...JSON.parse(result[1]), example: /^EXAMPLE (.*)$/m.exec(output)?.[1] };
}

async function byAutocannon(server, load) {
  const { name, keys, seconds, mayRefuse = false, inOrder = false, perSecond, asking } = load;
  let last = 0;
  const nextKey = () => {
    if (!inOrder) return `${name}-${Math.ceil(Math.random() * keys)}`;
    last = (last % keys) + 1;
    return `${name}-${last}`;
  };
  let wrong = 0;
  let refused = 0;
  let example = '';
  const latencies = createHistogram();
  const headers = asking.body === undefined ? {} : { 'Content-Type': 'application/json' };
  const run = autocannon({
    url: server.url,
    connections: load.connections ?? CONNECTIONS,
    duration: seconds,
    ...(perSecond === undefined ? {} : { overallRate: perSecond }),
    requests: [
      {
        method: 'POST',
        headers,
        setupRequest: (request) => ({ ...request, ...callOf(asking, nextKey) }),
      },
    ],
    verifyBody: (body) => {
      if (isRight(body, asking, mayRefuse)) return true;
      wrong += 1;
      example = body;
      return false;
    },
  });
  run.on('response', (_client, status, _bytes, millis) => {
    latencies.record(toMicros(millis));
    if (status === 429) refused += 1;
  });
  const { requests, errors, duration } = await run;
  return {
    answers: requests.total,
    seconds: duration,
    wrong,
    refused,
    failed: errors,
    example,
    p50Micros: latencies.percentile(50),
    p99Micros: latencies.percentile(99),
  };
}

/**
 * The latency of checks at a rate. autocannon sends what a connection has to send in a second at its
 * beginning; so each connection has a second of its own, and they begin one after the other.
 */
export async function latencyAt(server, perSecond, { name, seconds }) {
  const latencies = createHistogram();
  let answers = 0;
  let wrong = 0;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, i) => {
      await delay((1000 * i) / CONNECTIONS);
      const run = autocannon({
        url: `${server.url}/rate/${name}-1`,
        method: 'POST',
        connections: 1,
        connectionRate: Math.max(1, Math.round(perSecond / CONNECTIONS)),
        duration: seconds,
        verifyBody: (body) => APPROVAL.test(body),
      });
      run.on('response', (_client, _status, _bytes, millis) => latencies.record(toMicros(millis)));
      const { requests, mismatches, non2xx, errors } = await run;
      answers += requests.total;
      wrong += mismatches + non2xx + errors;
    }),
  );
  if (wrong > 0) throw new Error(`${server.name}: ${wrong} of ${answers} answers are wrong`);
  return {
    perSecond: answers / seconds,
    p50Micros: latencies.percentile(50),
    p99Micros: latencies.percentile(99),
  };
}

/**
 * `count` requests, each on a connection of its own and held until it is answered.
 * @returns the answers in their order, once the last has come; `at` in ms since 1970
 * @throws Error if an answer is no approval
 */
export async function hold(server, count, path) {
  const answers = [];
  await new Promise((resolve, reject) => {
    const run = autocannon({
      url: `${server.url}${path}`,
      method: 'POST',
      connections: count,
      amount: count,
      timeout: 600,
      setupClient: (client) => {
        client.on('body', (body) => {
          const at = performance.timeOrigin + performance.now();
          const requestId = APPROVAL.exec(String(body))?.[1];
          if (requestId === undefined) reject(new Error(`${server.name} answered ${body}`));
          answers.push({ at, requestId });
          // autocannon itself reports its end up to a second later.
          if (answers.length === count) resolve();
        });
      },
    });
    run.on('reqError', reject);
    run.catch(reject);
  });
  return answers;
}

/** The same, with the requests shared out among servers: their numbers differ by one at most. */
export async function holdOnAll(servers, count, path) {
  const held = servers.map((server, i) =>
    hold(server, Math.floor((count + i) / servers.length), path),
  );
  return (await Promise.all(held)).flat();
}

const toMicros = (millis) => Math.max(1, Math.round(millis * 1000));
