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
    [
      'a short token of a later entry',
      list(BILLING, { ...OPERATOR, token: 'fifteen-letters' }),
      '[1].token must have at least 16 characters',
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
  ])('such as %s is rejected with the fault and its place', (_what, text, complaint) => {
    expect(complaintAbout(text)).toBe(complaint);
  });

  const VISIBLE = 'token must consist of visible ASCII characters, without blanks';
  const PATTERN = 'must be a regular expression of RE2: error parsing regexp';
  const SHARE = 'waiting_share must be a number above 0, up to 1';
  test.each<[complaint: string, fields: object]>([
    ['name must be a string', { name: undefined }],
    ['name must not be empty', { name: '' }],
    ['token must be a string', { token: undefined }],
    ['token must have at least 16 characters', { token: '' }],
    [VISIBLE, { token: 'token-of-billing\n' }],
    [VISIBLE, { token: 'token-of-billing-é' }],
    ['token must not be empty', { token: [] }],
    ['token[1] must have at least 16 characters', { token: [BILLING.token, 'fifteen-letters'] }],
    ['token[0] must be a string', { token: [[BILLING.token]] }],
    ['scopes must be a list', { scopes: undefined }],
    ['scopes must be a list', { scopes: 'check' }],
    ['scopes[1] must be one of check, release, debug, configure', { scopes: ['check', 'relase'] }],
    ['key_patterns must be a list', { key_patterns: 'billing' }],
    ['key_patterns[0] must be a string', { key_patterns: [7] }],
    [`key_patterns[1] ${PATTERN}: missing closing )`, { key_patterns: ['billing', '(a'] }],
    [`key_patterns[0] ${PATTERN}: invalid or unsupported Perl syntax`, { key_patterns: ['(?=a)'] }],
    ['key_patterns[0] must have at most 1024 characters', { key_patterns: ['x'.repeat(1025)] }],
    ...[0, -0.5, 1.01, '0.5', null].map((waiting_share): [string, object] => [
      SHARE,
      { waiting_share },
    ]),
  ])('[0].%s, not %p', (complaint, fields) => {
    expect(complaintAbout(list({ ...BILLING, ...fields }))).toBe(`[0].${complaint}`);
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
