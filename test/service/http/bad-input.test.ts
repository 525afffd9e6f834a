import { querySchema } from '../../../src/http/intake/parameters.js';
import { debugState } from '../../support/debug-state.js';
import { approve, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';

/** Queries that are wrong for every parameter, which takes the value `good`. */
const WRONG_FOR_ALL: [kind: string, query: (name: string, good: string) => string][] = [
  ['empty', (name) => `${name}=`],
  ['without a value', (name) => name],
  ['negative zero', (name) => `${name}=-0`],
  ['a blank', (name) => `${name}=%20`],
  ['a leading blank', (name, good) => `${name}=%20${good}`],
  ['a trailing blank', (name, good) => `${name}=${good}%20`],
  ['a trailing line break', (name, good) => `${name}=${good}%0A`],
  ['a NUL', (name, good) => `${name}=${good}%00`],
  ['quoted', (name, good) => `${name}=%22${good}%22`],
  ['bad percent-encoding', (name) => `${name}=%zz`],
  ['half a percent-encoding', (name, good) => `${name}=${good}%`],
  ['bytes that are not UTF-8', (name) => `${name}=%ff`],
  ['given twice', (name, good) => `${name}=${good}&${name}=1`],
  ['given twice alike', (name, good) => `${name}=${good}&${name}=${good}`],
  ['given twice, empty first', (name, good) => `${name}=&${name}=${good}`],
  ['with [] after its name', (name, good) => `${name}[]=${good}`],
  ['with an index after its name', (name, good) => `${name}[0]=${good}`],
  ['with a field after its name', (name, good) => `${name}[value]=${good}`],
  ['with encoded [] after its name', (name, good) => `${name}%5B%5D=${good}`],
];

// Parameters and settings have the same forms of numbers and booleans: test/unit/config/settings.test.ts has more.

const OUT_OF_BOUNDS: [name: string, value: string][] = [
  ['maxRequests', '0'],
  ['maxRequests', '1000000001'],
  ['maxRequests', '999999999999999'],
  ['maxRequestsInQueue', '100001'],
  ['maxRequestsInQueue', '999999999999999'],
  ['windowMillis', '0'],
  ['maxWaitMillis', '31622400001'],
  ['maxWaitMillis', '999999999999999'],
];

const AT_BOUNDS: [name: string, value: number, field: string][] = [
  ['maxRequests', 1, 'MaxRequestsPerWindow'],
  ['maxRequests', 1_000_000_000, 'MaxRequestsPerWindow'],
  ['maxRequestsInQueue', 0, 'MaxRequestsInQueue'],
  ['maxRequestsInQueue', 100_000, 'MaxRequestsInQueue'],
];

describe('bad input', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '3' }));

  async function expectRefused(parameter: string, query: string): Promise<void> {
    const key = uniqueKey();
    for (const method of ['POST', 'GET']) {
      const answer = await send(app.url, method, `/rate/${key}?${query}`);

      expect(answer.status).toBe(400);
      expect(answer.headers['content-type']).toBe('application/json');
      expect(answer.json()).toStrictEqual({
        // The message names the parameter first, or last if the parameter is misspelt.
        error: expect.stringMatching(
          new RegExp(`^${parameter}\\b|; did you mean ${parameter}\\?$`),
        ) as unknown,
        key,
      });
    }
    expect(await debugState(app.url, key)).toStrictEqual({ Key: key, Found: false });
  }

  describe.each([
    ['maxRequests', '5'],
    ['canWait', 'true'],
  ])('%s', (parameter, good) => {
    test.each(WRONG_FOR_ALL)('%s is rejected', async (_kind, queryOf) => {
      await expectRefused(parameter, queryOf(parameter, good));
    });
  });

  test.each(Object.keys(querySchema.shape))('%s given twice is rejected', async (parameter) => {
    await expectRefused(parameter, `${parameter}=1&${parameter}=1`);
  });

  test('maxRequests given twice, its name encoded, is rejected', async () => {
    await expectRefused('maxRequests', 'maxRequests=5&%6DaxRequests=5');
  });

  test.each(OUT_OF_BOUNDS)('%s=%s is rejected', async (parameter, value) => {
    await expectRefused(parameter, `${parameter}=${value}`);
  });

  test.each(AT_BOUNDS)('%s=%s is accepted', async (parameter, value, field) => {
    const key = uniqueKey();
    await approve(app.url, key, `?${parameter}=${value}`);

    expect((await debugState(app.url, key)).Config).toHaveProperty(field, value);
  });

  test('one wrong parameter among right ones is rejected', async () => {
    await expectRefused('maxRequestsInQueue', 'canWait=true&maxRequests=5&maxRequestsInQueue=-1');
  });
});
