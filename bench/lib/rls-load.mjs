// Calls of Envoy's protocol, as Envoy makes them: many under way on a few connections. A run with a wrong answer measures
// nothing, and fails.
import { Buffer } from 'node:buffer';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

const CONNECTIONS = 4;
const CALLS_PER_CONNECTION = 16;
const CALLS = CONNECTIONS * CALLS_PER_CONNECTION;

const HEADERS = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  'content-type': 'application/grpc',
  te: 'trailers',
  'grpc-timeout': '1S',
};
/** A reply begins with its frame, and its first field is the code: OK is 1. */
const CODE_AT = 5;
const OK = Buffer.from('0801', 'hex');

/**
 * @param {number} port
 * @param {{keys: number, seconds: number, perSecond?: number}} load keys are drawn at random; `perSecond`: callers pause,
 *   so that they make about this many calls
 */
export async function callRls(port, { keys, seconds, perSecond }) {
  const requests = Array.from({ length: keys }, (_, i) => requestFor(`key-${i + 1}`));
  const run = { answers: 0, latencies: createHistogram(), wrong: undefined };
  const pauseMillis = perSecond === undefined ? 0 : (1000 * CALLS) / perSecond;
  const endsAt = performance.now() + seconds * 1000;
  const sessions = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const session = connect(`http://127.0.0.1:${port}`);
      await once(session, 'connect');
      return session;
    }),
  );
  const caller = async (session) => {
    let next = performance.now() + Math.random() * pauseMillis;
    while (performance.now() < endsAt) {
      if (pauseMillis > 0) {
        const wait = next - performance.now();
        next += pauseMillis;
        if (wait > 0) await delay(wait);
      }
      const begun = performance.now();
      await call(session, requests[Math.floor(Math.random() * keys)], run);
      run.latencies.record(Math.max(1, Math.round((performance.now() - begun) * 1000)));
    }
  };
  await Promise.all(
    sessions.flatMap((session) =>
      Array.from({ length: CALLS_PER_CONNECTION }, () => caller(session)),
    ),
  );
  for (const session of sessions) session.close();
  if (run.wrong !== undefined || run.answers === 0) {
    throw new Error(`port ${port}: a call has a wrong answer: ${run.wrong}`);
  }
  return {
    answers: run.answers,
    perSecond: run.answers / seconds,
    p99Micros: run.latencies.percentile(99),
  };
}

/** Resolves when the call is over. It is right if it is approved. */
function call(session, request, run) {
  return new Promise((resolve) => {
    const stream = session.request(HEADERS);
    let reply = Buffer.of();
    let status = '';
    stream.on(
      'data',
      (piece) => (reply = reply.length === 0 ? piece : Buffer.concat([reply, piece])),
    );
    stream.on('response', (headers) => (status = headers['grpc-status'] ?? status));
    stream.on('trailers', (headers) => (status = headers['grpc-status']));
    stream.on('error', (error) => (run.wrong ??= error.message));
    stream.on('close', () => {
      run.answers += 1;
      const code = reply.subarray(CODE_AT, CODE_AT + OK.length);
      if (String(status) !== '0' || !code.equals(OK)) {
        run.wrong ??= `status ${status}, ${reply.toString('hex')}`;
      }
      resolve();
    });
    stream.end(request);
  });
}

/** A request of the domain `bench` with one descriptor of one entry, in its frame. */
function requestFor(value) {
  const entry = message([1, 'key'], [2, value]);
  const request = message([1, 'bench'], [2, message([1, entry])]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(request.length, 1);
  return Buffer.concat([head, request]);
}

/** A message of fields that are texts or messages, all of fewer than 128 bytes. */
function message(...fields) {
  return Buffer.concat(
    fields.map(([number, content]) => {
      const bytes = Buffer.from(content);
      return Buffer.concat([Buffer.of((number << 3) | 2, bytes.length), bytes]);
    }),
  );
}
