import { type TestApp, startTestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { approve, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

/** Values of a query parameter that are not whole numbers, as they are written in the URL. */
const NO_WHOLE_NUMBER: [kind: string, query: (name: string) => string][] = [
  ['empty', (name) => `${name}=`],
  ['without a value', (name) => name],
  ['a plus sign', (name) => `${name}=%2B5`],
  ['a minus sign', (name) => `${name}=-5`],
  ['negative zero', (name) => `${name}=-0`],
  ['a decimal', (name) => `${name}=5.5`],
  ['a decimal without a fraction', (name) => `${name}=5.0`],
  ['a trailing point', (name) => `${name}=5.`],
  ['an exponent', (name) => `${name}=1e3`],
  ['hexadecimal', (name) => `${name}=0x10`],
  ['octal', (name) => `${name}=0o7`],
  ['binary', (name) => `${name}=0b1`],
  ['a BigInt literal', (name) => `${name}=5n`],
  ['a digit separator', (name) => `${name}=1_000`],
  ['a thousands separator', (name) => `${name}=1,000`],
  ['a blank', (name) => `${name}=%20`],
  ['a leading blank', (name) => `${name}=%205`],
  ['a plus that means a blank', (name) => `${name}=+5`],
  ['a trailing blank', (name) => `${name}=5%20`],
  ['a trailing line break', (name) => `${name}=5%0A`],
  ['a NUL', (name) => `${name}=5%00`],
  ['letters', (name) => `${name}=many`],
  ['letters after digits', (name) => `${name}=5x`],
  ['NaN', (name) => `${name}=NaN`],
  ['Infinity', (name) => `${name}=Infinity`],
  ['null', (name) => `${name}=null`],
  ['true', (name) => `${name}=true`],
  ['quoted', (name) => `${name}=%225%22`],
  ['a JSON list', (name) => `${name}=[5]`],
  ['16 digits', (name) => `${name}=${'9'.repeat(16)}`],
  ['16 digits that mean a small number', (name) => `${name}=0000000000000005`],
  ['400 digits', (name) => `${name}=${'9'.repeat(400)}`],
  ['Arabic-Indic digits', (name) => `${name}=${encodeURIComponent('٥')}`],
  ['full-width digits', (name) => `${name}=${encodeURIComponent('５')}`],
  ['a superscript', (name) => `${name}=${encodeURIComponent('5²')}`],
  ['an emoji', (name) => `${name}=${encodeURIComponent('5️⃣')}`],
  ['bad percent-encoding', (name) => `${name}=%zz`],
  ['half a percent-encoding', (name) => `${name}=5%`],
  ['bytes that are not UTF-8', (name) => `${name}=%ff`],
  ['given twice', (name) => `${name}=5&${name}=6`],
  ['given twice alike', (name) => `${name}=5&${name}=5`],
  ['given twice, empty first', (name) => `${name}=&${name}=5`],
  ['given twice, its name encoded', (name) => `${name}=5&%6D${name.slice(1)}=5`],
  ['with [] after its name', (name) => `${name}[]=5`],
  ['with an index after its name', (name) => `${name}[0]=5`],
  ['with a field after its name', (name) => `${name}[value]=5`],
  ['with encoded [] after its name', (name) => `${name}%5B%5D=5`],
];

const NO_BOOLEAN: [kind: string, query: string][] = [
  ['empty', 'canWait='],
  ['without a value', 'canWait'],
  ['yes', 'canWait=yes'],
  ['no', 'canWait=no'],
  ['on', 'canWait=on'],
  ['off', 'canWait=off'],
  ['t', 'canWait=t'],
  ['y', 'canWait=y'],
  ['2', 'canWait=2'],
  ['-1', 'canWait=-1'],
  ['negative zero', 'canWait=-0'],
  ['01', 'canWait=01'],
  ['1.0', 'canWait=1.0'],
  ['1e0', 'canWait=1e0'],
  ['0x1', 'canWait=0x1'],
  ['a plus sign', 'canWait=%2B1'],
  ['null', 'canWait=null'],
  ['undefined', 'canWait=undefined'],
  ['a blank', 'canWait=%20'],
  ['a leading blank', 'canWait=%20true'],
  ['a trailing blank', 'canWait=true%20'],
  ['a trailing line break', 'canWait=true%0A'],
  ['a NUL', 'canWait=true%00'],
  ['quoted', 'canWait=%22true%22'],
  ['a word that begins well', 'canWait=truee'],
  ['a full-width digit', `canWait=${encodeURIComponent('１')}`],
  ['a letter that looks like another', `canWait=${encodeURIComponent('falſe')}`],
  ['an emoji', `canWait=${encodeURIComponent('✅')}`],
  ['bad percent-encoding', 'canWait=%zz'],
  ['bytes that are not UTF-8', 'canWait=%ff'],
  ['16 digits', `canWait=${'1'.repeat(16)}`],
  ['given twice', 'canWait=true&canWait=false'],
  ['given twice alike', 'canWait=true&canWait=true'],
  ['with [] after its name', 'canWait[]=true'],
  ['with an index after its name', 'canWait[0]=true'],
  ['with a field after its name', 'canWait[value]=true'],
  ['with encoded [] after its name', 'canWait%5B%5D=true'],
];

const OUT_OF_BOUNDS: [name: string, value: string][] = [
  ['maxRequests', '0'],
  ['maxRequests', '1000000001'],
  ['maxRequests', '999999999999999'],
  ['maxRequestsInQueue', '100001'],
  ['maxRequestsInQueue', '999999999999999'],
  ['maxWaitMillis', '31622400001'],
  ['maxWaitMillis', '999999999999999'],
];

const AT_BOUNDS: [name: string, value: number, field: string][] = [
  ['maxRequests', 1, 'MaxRequestsPerWindow'],
  ['maxRequests', 1_000_000_000, 'MaxRequestsPerWindow'],
  ['maxRequestsInQueue', 0, 'MaxRequestsInQueue'],
  ['maxRequestsInQueue', 100_000, 'MaxRequestsInQueue'],
];

const redis = useRedis();

describe.each(bothLimiters(redis))('bad input (%s limiter)', (_name, settings) => {
  let app: TestApp;
  let keyPrefix: string;
  beforeAll(async () => {
    keyPrefix = `${uniqueKey()}:`;
    app = await startTestApp({
      ...settings(),
      KEY_PREFIX: keyPrefix,
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '3',
    });
  });
  afterAll(() => app.stop(0));

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
    expect(await redis.client.exists(`${keyPrefix}{${key}}`)).toBe(0);
  }

  describe.each(['maxRequests', 'maxRequestsInQueue', 'maxWaitMillis'])('%s', (parameter) => {
    test.each(NO_WHOLE_NUMBER)('%s is rejected', async (_kind, query) => {
      await expectRefused(parameter, query(parameter));
    });
  });

  describe('canWait', () => {
    test.each(NO_BOOLEAN)('%s is rejected', async (_kind, query) => {
      await expectRefused('canWait', query);
    });
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

  test('a rejected check on a key that exists changes and counts nothing', async () => {
    const key = uniqueKey();
    await approve(app.url, key);
    const before = await debugState(app.url, key);
    await send(app.url, 'POST', `/rate/${key}?maxRequests=1&maxRequestsInQueue=x`);
    await send(app.url, 'POST', `/rate/${key}?maxRequests=1&canWait=x`);

    expect(await debugState(app.url, key)).toStrictEqual(before);
  });
});
