import { Tokens } from '../../../../src/http/auth/tokens.js';

const BILLING = { name: 'billing', token: 'token-of-billing', scopes: ['check', 'release'] };
const OPERATOR = { name: 'operator', token: 'token-of-operator', scopes: ['debug'] };

function parse(...entries: unknown[]): Tokens {
  return Tokens.parse(JSON.stringify(entries));
}

/** What is said of a text that is no list of tokens. */
function complaintAbout(text: string): string {
  try {
    Tokens.parse(text);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error(`taken: ${text}`);
}

describe('a list of tokens', () => {
  test('knows whose a token is, and what it may do', () => {
    const tokens = parse(BILLING, OPERATOR);

    expect(tokens.callerOf('token-of-billing')).toEqual({
      name: 'billing',
      scopes: ['check', 'release'],
    });
    expect(tokens.callerOf('token-of-operator')).toEqual({ name: 'operator', scopes: ['debug'] });
    expect(tokens.names).toEqual(['billing', 'operator']);
  });

  test.each(['', 'token-of-billin', 'token-of-billing ', 'TOKEN-OF-BILLING', 'billing'])(
    'does not know %j',
    (token) => {
      expect(parse(BILLING, OPERATOR).callerOf(token)).toBeUndefined();
    },
  );

  test('may be empty, and knows nobody then', () => {
    expect(parse().callerOf('token-of-billing')).toBeUndefined();
  });

  test('may hold a token that is good for nothing', () => {
    expect(parse({ ...BILLING, scopes: [] }).callerOf(BILLING.token)?.scopes).toEqual([]);
  });

  test('keeps no token', () => {
    const seen: unknown[] = [];
    const look = (value: unknown): void => {
      if (typeof value === 'object' && value !== null && !seen.includes(value)) {
        seen.push(value);
        Reflect.ownKeys(value).forEach((key) => {
          look((value as Record<PropertyKey, unknown>)[key]);
        });
      } else seen.push(value);
    };
    const tokens = parse(BILLING);
    look(tokens);
    look(tokens.callerOf(BILLING.token));

    expect(seen).toContain('billing');
    expect(seen).not.toContain(BILLING.token);
  });
});

describe('what is no list of tokens', () => {
  const list = (...entries: unknown[]): string => JSON.stringify(entries);

  test.each([
    ['nothing', '', 'it is no JSON'],
    ['no JSON', '[{"name": "a" "token"', 'it is no JSON at position 14'],
    ['an object', '{}', 'it must be a list'],
    ['null', 'null', 'it must be a list'],
    ['a list of texts', '["billing"]', '[0] must be an object with name, token and scopes'],
    ['an entry without a name', list({ ...BILLING, name: undefined }), '[0].name must be a string'],
    ['an empty name', list({ ...BILLING, name: '' }), '[0].name must not be empty'],
    [
      'an entry without a token',
      list({ ...BILLING, token: undefined }),
      '[0].token must be a string',
    ],
    [
      'an entry without scopes',
      list({ ...BILLING, scopes: undefined }),
      '[0].scopes must be a list',
    ],
    [
      'an empty token',
      list({ ...BILLING, token: '' }),
      '[0].token must have at least 16 characters',
    ],
    [
      'a short token',
      list(BILLING, { ...OPERATOR, token: 'fifteen-letters' }),
      '[1].token must have at least 16 characters',
    ],
    [
      'a token with a line break at its end',
      list({ ...BILLING, token: 'token-of-billing\n' }),
      '[0].token must consist of visible ASCII characters, without blanks',
    ],
    [
      'a token that no header can carry',
      list({ ...BILLING, token: 'token-of-billing-é' }),
      '[0].token must consist of visible ASCII characters, without blanks',
    ],
    [
      'a scope that is unknown',
      list({ ...BILLING, scopes: ['check', 'relase'] }),
      '[0].scopes[1] must be one of check, release, debug',
    ],
    [
      'one scope, without a list',
      list({ ...BILLING, scopes: 'check' }),
      '[0].scopes must be a list',
    ],
    [
      'an unknown field',
      list(BILLING, { ...OPERATOR, expires: 'never' }),
      '[1] must have no fields but name, token and scopes',
    ],
    [
      'a name given twice',
      list(BILLING, { ...OPERATOR, name: 'billing' }),
      '[1].name must not be that of an entry before',
    ],
    [
      'a token given twice',
      list(BILLING, OPERATOR, { ...OPERATOR, name: 'other' }),
      '[2].token must not be that of an entry before',
    ],
  ])('such as %s is refused with what is wrong, and where', (_what, text, complaint) => {
    expect(complaintAbout(text)).toBe(complaint);
  });

  const secret = 'a-token-that-is-secret';
  test.each([
    ['as text', secret],
    ['in a list', `[${secret}]`],
    ['in quotes, in a list', `["${secret}"]`],
    ['as a list', `["${secret}",]`],
    ['as its name', list({ name: 5, token: secret, scopes: [] })],
    ['as a scope', list({ ...BILLING, scopes: [secret] })],
    ['as a field', list({ ...BILLING, [secret]: ['check'] })],
    ['twice', list({ ...BILLING, token: secret }, { ...OPERATOR, token: secret })],
    ['as a name, twice', list({ ...BILLING, name: secret }, { ...OPERATOR, name: secret })],
  ])('shows no token that it has %s', (_where, text) => {
    expect(complaintAbout(text)).not.toContain('secret');
  });
});
