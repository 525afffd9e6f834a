import type { OutgoingHttpHeaders } from 'node:http';

import { type Answer, send } from '../../support/http-client.js';
import type { LogLine } from '../../support/replica-process.js';
import { bearer } from '../../support/tokens.js';
import { type FilesRead, useApps } from '../../support/use-apps.js';

/** Checks with and without `?` take different code paths. Each path gets a service of its own. */
const WAYS = ['', '?'] as const;

interface Step {
  readonly method?: string;
  readonly key?: string;
  readonly headers?: OutgoingHttpHeaders | undefined;
}

interface Case {
  readonly settings?: Readonly<Record<string, string>>;
  readonly files?: FilesRead;
  readonly steps: readonly Step[];
  readonly statuses: readonly number[];
}

const ID = '00000000-0000-0000-0000-000000000000';
const UUID = /[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}/g;

/** The parts of an answer that must be the same on both paths. */
function comparable({ status, headers, text }: Answer): object {
  return withoutVarying({ status, headers: { ...headers, date: undefined }, text });
}

function comparableLine(line: LogLine): object {
  const { url } = (line.req ?? {}) as { url?: string };
  const responseTime = typeof line.responseTime;
  return withoutVarying({ ...line, time: undefined, port: undefined, req: { url }, responseTime });
}

/** Removes ids, the `?` of a path, and the seconds until a window ends. */
function withoutVarying(value: object): object {
  const text = JSON.stringify(value)
    .replaceAll(UUID, ID)
    .replaceAll('?"', '"')
    .replaceAll(/;t=\d+|(?<="retry-after":")\d+/g, '');
  return JSON.parse(text) as object;
}

const start = useApps();

const CHECK: Step = { method: 'POST' };
const LIMITS = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
const CASES: Record<string, () => Case> = {
  'approvals and denials': () => ({
    settings: LIMITS,
    steps: [CHECK, { method: 'GET' }, { method: 'GET', key: 'a.b-c_d~e:f' }],
    statuses: [200, 429, 200],
  }),
  'other methods': () => ({
    steps: [{ method: 'HEAD' }, { method: 'PATCH' }, { method: 'DELETE' }, { method: 'OPTIONS' }],
    statuses: [405, 405, 405, 405],
  }),
  'pauses without a length': () => ({
    steps: [{ method: 'PUT' }, CHECK],
    statuses: [400, 200],
  }),
  'keys at their bounds': () => ({
    steps: [
      { ...CHECK, key: 'k'.repeat(512) },
      { ...CHECK, key: 'k'.repeat(513) },
      { ...CHECK, key: '..' },
    ],
    statuses: [200, 400, 200],
  }),
  'correlation ids': () => ({
    steps: [{ ...CHECK, headers: { 'X-Correlation-ID': 'order-4711' } }],
    statuses: [200],
  }),
  'bodies, and connections that are to be closed': () => ({
    steps: [
      { ...CHECK, headers: { 'Content-Length': '0' } },
      { ...CHECK, headers: { Connection: 'close' } },
    ],
    statuses: [200, 200],
  }),
  rules: () => {
    const rule = { key_pattern: 'k', max_requests_per_window: 1, shadow: true };
    return {
      settings: { ...LIMITS, UNKNOWN_KEYS: 'deny' },
      files: { rules: [rule] },
      steps: [CHECK, CHECK, { ...CHECK, key: 'other' }],
      statuses: [200, 200, 403],
    };
  },
  'a store that is full': () => ({
    settings: { MAX_KEYS: '1' },
    steps: [CHECK, { ...CHECK, key: 'other' }],
    statuses: [200, 503],
  }),
  tokens: () => {
    const callers = [
      { name: 'a', token: 'a'.repeat(32), scopes: ['check'], key_patterns: ['k'] },
      { name: 'b', token: 'b'.repeat(32), scopes: ['release'] },
    ] as const;
    const [a, b] = callers.map((caller) => bearer(caller));
    return {
      files: { tokens: callers },
      steps: [
        CHECK,
        { ...CHECK, headers: bearer({ token: 'c'.repeat(32) }) },
        { ...CHECK, headers: b },
        { ...CHECK, headers: a },
        { ...CHECK, headers: a, key: 'other' },
      ],
      statuses: [401, 401, 403, 200, 403],
    };
  },
};

test.each(Object.entries(CASES))('%s are answered alike on both paths', async (_name, create) => {
  const { settings, files, steps, statuses } = create();
  const [plain, routed] = await Promise.all(
    WAYS.map(async (end) => {
      const app = await start({ ...settings, LOG_2XX: 'true', LOG_4XX: 'true' }, files);
      const answers: Answer[] = [];
      for (const { method = 'POST', key = 'k', headers } of steps) {
        answers.push(await send(app.url, method, `/rate/${key}${end}`, headers));
      }
      return { answers, log: app.log };
    }),
  );
  expect(plain!.answers.map(({ status }) => status)).toEqual(statuses);
  expect(plain!.answers.map(comparable)).toEqual(routed!.answers.map(comparable));
  expect(plain!.log.map(comparableLine)).toEqual(routed!.log.map(comparableLine));
});
