import { setTimeout as delay } from 'node:timers/promises';

import {
  limitedFetch,
  type LimitedFetchOptions,
  SluiceClient,
} from '../../../clients/node/src/index.js';
import { useVendors } from '../../support/client/vendor.js';
import { type DebugState, debugState } from '../../support/debug-state.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';

/** Longer than a test waits for its end. */
const HELD_MILLIS = 3_600_000;

const startVendor = useVendors();
const KEEPING = {
  key_pattern: 'llm .*',
  key_pattern_is_regex: true,
  max_requests_per_window: 1000,
  window_millis: 3_600_000,
  limits: [
    { name: 'at-once', max_requests_per_window: 3, window_millis: 1000 },
    {
      name: 'tokens',
      max_hits_per_window: 1000,
      window_millis: 3_600_000,
      releases_return: false,
    },
  ],
};
const sluice = useApp(() => ({}), { rules: [KEEPING] });
/** Its corrections may take long. A limited `fetch` gives up after a second, and then the hits stay. */
class PatientClient extends SluiceClient {
  override correct(key: string, requestId: string, hits: number): Promise<boolean> {
    return super.correct(key, requestId, hits, { timeoutMillis: 60_000 });
  }
}
let client: SluiceClient;
beforeAll(() => {
  client = new PatientClient(sluice.url);
});

const ESTIMATE = 100;

/** Forms of answers that only their caller knows. */
interface Used {
  readonly used: number;
}
interface Weighed {
  readonly used: { readonly input: number; readonly output: number };
}

const JSON_TYPE = 'application/json';
const STREAM = 'text/event-stream; charset=utf-8';
const events = (...data: readonly (object | string)[]) =>
  data
    .map(
      (one) => `event: any\r\ndata: ${typeof one === 'string' ? one : JSON.stringify(one)}\r\n\r\n`,
    )
    .join('');
const OPENAI_STREAM = events(
  { choices: [{ delta: { content: 'ä' } }], usage: null },
  { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } },
  '[DONE]',
);
const ANTHROPIC_STREAM = events(
  { type: 'message_start', message: { usage: { input_tokens: 3, output_tokens: 1 } } },
  { type: 'content_block_delta' },
  { type: 'message_delta', usage: { output_tokens: 20 } },
  { type: 'message_stop' },
);
const usedIn = ({ Limits = [] }: DebugState) =>
  Limits.find(({ Name }) => Name === 'tokens')?.NumApprovedThisWindow;

/** Calls a vendor that answers with a body of a type. @returns the key, and the answer */
async function call(type: string, body: string, options: Partial<LimitedFetchOptions> = {}) {
  const vendor = await startVendor(({ response }) => {
    response.writeHead(200, { 'content-type': type }).end(body);
  });
  const key = `llm ${uniqueKey()}`;
  const holdMillis = HELD_MILLIS;
  const limited = limitedFetch(client, {
    ...{ keyOf: () => key, hits: ESTIMATE, correctsHits: true, holdMillis },
    ...options,
  });
  return { key, answer: await limited(vendor.url, { method: 'POST' }) };
}
const state = (key: string) => debugState(sluice.url, key);
const untilReleased = (key: string) => until(async () => (await state(key)).NumHeld === undefined);

describe('the hits of an approval', () => {
  test.each<[string, string, string, number]>([
    ['of OpenAI', JSON_TYPE, '{"usage":{"total_tokens":12}}', 12],
    ['of Anthropic', JSON_TYPE, '{"usage":{"input_tokens":3,"output_tokens":20}}', 23],
    ['of a stream of OpenAI', STREAM, OPENAI_STREAM, 7],
    ['of a stream of Anthropic', STREAM, ANTHROPIC_STREAM, 23],
    [
      'of a stream of the Responses API',
      STREAM,
      events(
        { type: 'response.created', response: { usage: null } },
        { type: 'response.completed', response: { usage: { total_tokens: 12 } } },
      ),
      12,
    ],
    ['of no JSON', JSON_TYPE, '{"usage":', ESTIMATE],
    ['without usage', JSON_TYPE, '[]', ESTIMATE],
    ['of another type', 'text/plain', '{"usage":{"total_tokens":12}}', ESTIMATE],
    ['of a stream that was cut', STREAM, ANTHROPIC_STREAM.slice(0, 150), ESTIMATE],
  ])('are those that an answer %s says were used', async (_, type, body, used) => {
    const { key, answer } = await call(type, body);

    expect(await answer.text()).toBe(body);

    // The correction comes before the release, after which only `tokens` counts the approval.
    await untilReleased(key);
    expect(usedIn(await state(key))).toBe(used);
    expect((await state(key)).NumApprovedThisWindow).toBe(0);
  });

  test('are corrected without a hold', async () => {
    const { key, answer } = await call(STREAM, OPENAI_STREAM, { holdMillis: undefined });
    await answer.text();

    await until(async () => (await state(key)).NumApprovedThisWindow === 7);
  });

  test('are corrected if the caller cancels a stream after its last usage', async () => {
    let end = (): unknown => undefined;
    const vendor = await startVendor(({ response }) => {
      response.writeHead(200, { 'content-type': STREAM }).write(OPENAI_STREAM);
      end = () => response.end();
    });
    const key = `llm ${uniqueKey()}`;
    const options = {
      keyOf: () => key,
      hits: ESTIMATE,
      correctsHits: true,
      holdMillis: HELD_MILLIS,
    };
    const { body } = await limitedFetch(client, options)(vendor.url);

    for await (const chunk of body!) if (Buffer.from(chunk).includes('[DONE]')) break;

    await untilReleased(key);
    expect(usedIn(await state(key))).toBe(7);
    end();
  });

  test('are read however a stream is divided', async () => {
    const vendor = await startVendor(({ response }) => {
      const bytes = Buffer.from(OPENAI_STREAM);
      response.writeHead(200, { 'content-type': STREAM });
      const send = async () => {
        for (const byte of bytes) {
          response.write(Buffer.of(byte));
          await delay(0);
        }
        response.end();
      };
      void send();
    });
    const key = `llm ${uniqueKey()}`;
    const options = { keyOf: () => key, hits: ESTIMATE, correctsHits: true };

    expect(await (await limitedFetch(client, options)(vendor.url)).text()).toBe(OPENAI_STREAM);

    await until(async () => (await state(key)).NumApprovedThisWindow === 7);
  });

  test.each<[string, string, LimitedFetchOptions['correctsHits'], number]>([
    [
      'of an answer',
      '{"used":{"input":3,"output":4}}',
      ({ used }: Weighed) => used.input + 5 * used.output,
      23,
    ],
    ['rounded up', '{"used":2.1}', ({ used }: Used) => used, 3],
    ['unless it returns none', '{"used":3}', () => undefined, ESTIMATE],
    ['unless they are no number from 0', '{"used":-1}', ({ used }: Used) => used, ESTIMATE],
    ['unless it throws', '{}', ({ used }: Weighed) => used.input, ESTIMATE],
  ])('are those that a function returns %s', async (_, body, correctsHits, used) => {
    const { key, answer } = await call('application/vnd.any+json', body, { correctsHits });

    await answer.text();

    await untilReleased(key);
    expect(usedIn(await state(key))).toBe(used);
  });

  test('gets the last fields of all events of a stream', async () => {
    const seen: object[] = [];
    const correctsHits: LimitedFetchOptions['correctsHits'] = (fields) => {
      seen.push({ ...(fields as object) });
      return undefined;
    };
    const body = events({ a: 1, b: 1, c: 1 }, { a: 2, b: null });
    const { key, answer } = await call(STREAM, body, { correctsHits });

    await answer.text();

    await untilReleased(key);
    expect(seen).toEqual([{ a: 2, b: 1, c: 1 }]);
  });

  test.each([JSON_TYPE, STREAM])('stay if a body of %s is too large to be kept', async (type) => {
    const filler = 'x'.repeat(5 * 1024 * 1024);
    const body = `data: {"filler":"${filler}","usage":{"total_tokens":12}}`;
    const { key, answer } = await call(type, type === STREAM ? body : body.slice('data: '.length));

    expect((await answer.text()).length).toBeGreaterThan(filler.length);

    await untilReleased(key);
    expect(usedIn(await state(key))).toBe(ESTIMATE);
  });
});

test('a correction that fails does not keep the hold', async () => {
  const asked: string[] = [];
  const failing = new SluiceClient({
    url: 'http://sluice',
    keepMillis: 0,
    fetch: (_, init) => {
      asked.push(init?.method ?? '');
      const status = init?.method === 'PUT' ? 500 : 200;
      return Promise.resolve(Response.json({ request_id: 'id' }, { status }));
    },
  });
  const vendor = await startVendor(({ response }) => {
    response.writeHead(200, { 'content-type': JSON_TYPE }).end('{"usage":{"total_tokens":1}}');
  });
  const options = { keyOf: () => 'a', correctsHits: true, holdMillis: HELD_MILLIS };

  await (await limitedFetch(failing, options)(vendor.url)).text();

  await until(() => asked.length === 3);
  expect(asked).toEqual(['POST', 'PUT', 'DELETE']);
});

test.each<[object, string]>([
  [{ correctHits: true }, 'unknown option correctHits; did you mean correctsHits?'],
  [{ correctsHits: 'yes' }, 'correctsHits must be true, false or a function, not "yes"'],
])('%j is rejected', (options, message) => {
  expect(() => limitedFetch(client, { keyOf: () => 'a', ...options })).toThrow(
    new TypeError(message),
  );
});
