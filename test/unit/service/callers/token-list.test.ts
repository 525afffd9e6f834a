import { parseTokenList } from '../../../../src/service/callers/token-list.js';

const BILLING = { name: 'billing', token: 'token-of-billing', scopes: ['check', 'release'] };
const OPERATOR = { name: 'operator', token: 'token-of-operator', scopes: ['debug'] };

const list = (...entries: unknown[]): string => JSON.stringify(entries);

/** The error for a text that is not a list of tokens. */
function complaintAbout(text: string): string {
  try {
    parseTokenList(text);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error(`accepted: ${text}`);
}

test('a caller may have several tokens, key patterns and a share of the waiting places', () => {
  const several = ['token-of-billing', 'token-of-billing-to-come'];
  const more = { key_patterns: ['billing:.*', ''], waiting_share: 1 };
  expect(parseTokenList(list({ ...BILLING, ...more, token: several }, OPERATOR))).toEqual([
    { ...BILLING, ...more, token: several },
    { ...OPERATOR, token: ['token-of-operator'] },
  ]);
});

describe('a text that is not a list of tokens', () => {
  test.each([
    ['nothing', '', 'it is not JSON'],
    ['invalid JSON', '[{"name": "a" "token"', 'it is not JSON at position 14'],
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
      '[0].scopes[1] must be one of check, release, debug, configure',
    ],
    [
      'one scope, without a list',
      list({ ...BILLING, scopes: 'check' }),
      '[0].scopes must be a list',
    ],
    [
      'an unknown field',
      list(BILLING, { ...OPERATOR, expires: 'never' }),
      '[1] must have no fields but name, token, scopes, key_patterns and waiting_share',
    ],
    [
      'a name given twice',
      list(BILLING, { ...OPERATOR, name: 'billing' }),
      '[1].name must not repeat the name of an earlier entry',
    ],
    [
      'a token given twice',
      list(BILLING, OPERATOR, { ...OPERATOR, name: 'other' }),
      '[2].token must not repeat the token of an earlier entry',
    ],
    [
      'a token given twice, in a list',
      list(BILLING, { ...OPERATOR, token: [OPERATOR.token, BILLING.token] }),
      '[1].token must not repeat the token of an earlier entry',
    ],
    ['an empty list of tokens', list({ ...BILLING, token: [] }), '[0].token must not be empty'],
    [
      'a short token in a list',
      list({ ...BILLING, token: [BILLING.token, 'fifteen-letters'] }),
      '[0].token[1] must have at least 16 characters',
    ],
    [
      'a token in a list that is not a text',
      list({ ...BILLING, token: [[BILLING.token]] }),
      '[0].token[0] must be a string',
    ],
    [
      'one key pattern, without a list',
      list({ ...BILLING, key_patterns: 'billing' }),
      '[0].key_patterns must be a list',
    ],
    [
      'a key pattern that is not a text',
      list({ ...BILLING, key_patterns: [7] }),
      '[0].key_patterns[0] must be a string',
    ],
    [
      'a key pattern that is not an expression',
      list({ ...BILLING, key_patterns: ['billing', '(a'] }),
      '[0].key_patterns[1] must be a regular expression of RE2: error parsing regexp: missing closing )',
    ],
    [
      'a key pattern that needs backtracking',
      list({ ...BILLING, key_patterns: ['(?=a)'] }),
      '[0].key_patterns[0] must be a regular expression of RE2: error parsing regexp: invalid or unsupported Perl syntax',
    ],
    [
      'a key pattern that is too long',
      list({ ...BILLING, key_patterns: ['x'.repeat(1025)] }),
      '[0].key_patterns[0] must have at most 1024 characters',
    ],
    ...[0, -0.5, 1.01, '0.5', null].map((share): [string, string, string] => [
      `a share of ${JSON.stringify(share)}`,
      list({ ...BILLING, waiting_share: share }),
      '[0].waiting_share must be a number above 0, up to 1',
    ]),
  ])('such as %s is rejected with the fault and its place', (_what, text, complaint) => {
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
    ['in a list, twice', list({ ...BILLING, token: [secret] }, { ...OPERATOR, token: [secret] })],
    ['as a key pattern', list({ ...BILLING, key_patterns: [`${secret}(`] })],
    ['as a share', list({ ...BILLING, waiting_share: secret })],
    ['as a name, twice', list({ ...BILLING, name: secret }, { ...OPERATOR, name: secret })],
  ])('never shows a token in its error: %s', (_where, text) => {
    expect(complaintAbout(text)).not.toContain('secret');
  });
});
