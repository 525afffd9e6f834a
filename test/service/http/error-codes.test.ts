import { send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { useApp } from '../../support/use-apps.js';

const PROBLEM = { accept: 'application/problem+json' };
const LIMITS = [{ name: 'day', max_hits_per_window: 1, window_millis: 86_400_000 }];

const rules = [{ key_pattern: '.*-of-two', key_pattern_is_regex: true, limits: LIMITS }];
const app = useApp(() => ({ MAX_REQUESTS: '2', WINDOW_MILLIS: '3600000' }), { rules });
const key = useHttpKey(() => app);

/** As it is sent: `Answer.json` leaves the code out. */
const bodyOf = ({ text }: { readonly text: string }): unknown => JSON.parse(text);

test('an error has its code, besides its message and its key', async () => {
  await key.approve('?hits=2');
  const denied = await key.check();
  expect([denied.headers['content-type'], bodyOf(denied)]).toEqual([
    'application/json',
    { error: 'rate limit exceeded', key: key.name, code: 'RATE_LIMIT_EXCEEDED' },
  ]);
  expect(bodyOf(await key.check('?hits=0'))).toMatchObject({ code: 'INVALID_PARAMETER' });
  expect(bodyOf(await send(app.url, 'GET', '/nothing'))).toMatchObject({ code: 'PATH_NOT_FOUND' });
});

describe('an error is a problem if its client prefers one', () => {
  test('as a denial, with its policy', async () => {
    await key.approve('?hits=2');
    const denied = await key.check('', PROBLEM);

    expect([denied.status, denied.headers['content-type'], bodyOf(denied)]).toEqual([
      429,
      'application/problem+json',
      {
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Request cannot be satisfied as assigned quota has been exceeded',
        status: 429,
        detail: 'rate limit exceeded',
        key: key.name,
        code: 'RATE_LIMIT_EXCEEDED',
        'violated-policies': ['default'],
      },
    ]);
    expect(denied.headers).toMatchObject({ 'retry-after': expect.any(String) as string });
  });

  test('as a denied peek', async () => {
    await key.approve('?hits=2');
    const path = `/rate/${key.name}?peek=true`;
    expect(bodyOf(await send(app.url, 'GET', path, PROBLEM))).toMatchObject({
      status: 429,
      waitMillis: expect.any(Number) as number,
      'violated-policies': ['default'],
    });
  });

  test('as a denial by one of several limits, which it names', async () => {
    const path = `/rate/${key.name}-of-two`;
    await send(app.url, 'POST', path);
    expect(bodyOf(await send(app.url, 'POST', path, PROBLEM))).toMatchObject({
      limit: 'day',
      'violated-policies': ['day'],
    });
  });

  test('as a request that must be fixed', async () => {
    const rejected = await key.check('?hits=0', PROBLEM);
    expect([rejected.status, rejected.headers['content-type'], bodyOf(rejected)]).toEqual([
      400,
      'application/problem+json',
      {
        type: 'about:blank',
        title: 'Bad Request',
        status: 400,
        detail: 'hits must be a whole number from 1 to 1000000000',
        key: key.name,
        code: 'INVALID_PARAMETER',
      },
    ]);
  });
});

test.each([
  ['*/*', 'application/json'],
  ['application/json', 'application/json'],
  ['application/problem+json;q=0.5, application/json', 'application/json'],
  ['application/problem+json;q=0', 'application/json'],
  ['application/json;q=0.5, application/problem+json', 'application/problem+json'],
  ['text/html, application/problem+json', 'application/problem+json'],
])('with Accept: %s, an error is %s', async (accept, expected) => {
  expect((await key.check('?hits=0', { accept })).headers['content-type']).toBe(expected);
});

test('an approval is no problem', async () => {
  const approved = await key.check('', PROBLEM);
  expect([approved.status, approved.headers['content-type']]).toEqual([200, 'application/json']);
});
