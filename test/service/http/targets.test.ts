import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { expectTransportError } from '../../support/expect-transport-error.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useApp } from '../../support/use-apps.js';

const redis = useRedis();

/** Characters that Node's parser lets through, and how the error names them. */
const AMBIGUOUS: [name: string, character: string, error: string][] = [
  ['#', '#', '# must be written as %23 in the URL'],
  ['backslash', '\\', '\\ must be written as %5C in the URL'],
];

const PLACES: [place: string, targetOf: (key: string, character: string) => string][] = [
  ['in the key', (key, character) => `/rate/${key}${character}x`],
  ['after the key', (key, character) => `/rate/${key}${character}`],
  ['in the query', (key, character) => `/rate/${key}?canWait=false${character}`],
  ['in absolute form', (key, character) => `http://test/rate/${key}${character}x`],
];

describe.each(bothLimiters(redis))('a target (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), WINDOW_MILLIS: '3600000' }));

  async function answerTo(target: string): Promise<string> {
    const connection = await openConnection(app.url);
    connection.write(requestText('POST', target, { Connection: 'close' }));
    await connection.closed;
    return connection.received;
  }

  async function expectRefused(target: string, error: string): Promise<void> {
    const answer = await answerTo(target);

    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    const body: unknown = JSON.parse(answer.split('\r\n\r\n')[1]!);
    expect(body).toStrictEqual({ error, code: 'INVALID_TARGET' });
  }

  async function expectNothingCounted(keys: string[]): Promise<void> {
    for (const key of keys) {
      expect(await debugState(app.url, key)).toStrictEqual({ Key: key, Found: false });
    }
  }

  describe.each(AMBIGUOUS)('with a raw %s', (_name, character, error) => {
    test.each(PLACES)(
      '%s gets a 400 that says so, and counts nothing',
      async (_place, targetOf) => {
        const key = uniqueKey();
        await expectRefused(targetOf(key, character), error);

        await expectNothingCounted([key, `${key}${character}x`, `${key}${character}`, `${key}/x`]);
      },
    );
  });

  test.each([...Array(32).keys(), 127])(
    'with the raw control character %d gets a 400',
    async (code) => {
      const key = uniqueKey();
      expectTransportError(
        await answerTo(`/rate/${key}${String.fromCharCode(code)}x`),
        '400 Bad Request',
      );

      await expectNothingCounted([key]);
    },
  );
});
