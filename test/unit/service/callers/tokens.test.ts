import { jest } from '@jest/globals';

import { KeyRights, parseTokenList, Tokens } from '../../../../src/service/callers/tokens.js';
import { recordLog } from '../../../support/recorded-log.js';
import { parseSettings } from '../../../../src/config/settings.js';
import { warnOfOpenAccess } from '../../../../src/service/callers/open-access.js';
import type { LogLine } from '../../../support/replica-process.js';
import { KeyPatterns } from '../../../../src/rules/key-patterns.js';

const BILLING = { name: 'billing', token: 'token-of-billing', scopes: ['check', 'release'] };

const OPERATOR = { name: 'operator', token: 'token-of-operator', scopes: ['debug'] };

function parse(...entries: unknown[]): Tokens {
  return new Tokens(parseTokenList(JSON.stringify(entries)));
}

describe('a list of tokens', () => {
  test('may hold a token without scopes', () => {
    expect(parse({ ...BILLING, scopes: [] }).callerOf(BILLING.token)?.scopes).toEqual([]);
  });

  test('keeps no token', () => {
    const seen: unknown[] = [];
    const look = (value: unknown): void => {
      if (value instanceof Map) look([...(value as Map<unknown, unknown>)]);
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

describe('the keys of a caller', () => {
  const KEYS = ['billing', 'billing:1', 'xbilling:1', 'billing:', 'shop', 'shops', 'a\nshop', ''];

  function keysOf(key_patterns: string[] | undefined): string[] {
    const caller = parse({ ...BILLING, key_patterns }, OPERATOR).callerOf(BILLING.token)!;
    return KEYS.filter(caller.mayUse);
  }

  test('are all keys if it has no patterns, and none if the list is empty', () => {
    expect(keysOf(undefined)).toEqual(KEYS);
    expect(keysOf([])).toEqual([]);
  });

  test('are the keys that one of its patterns matches as a whole', () => {
    expect(keysOf(['billing:.*', 'shop|nothing'])).toEqual(['billing:1', 'billing:', 'shop']);
    expect(keysOf([''])).toEqual(['']);
  });
});

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
    ['as a list', `["${secret}",]`],
    ['as its name', list({ name: 5, token: secret, scopes: [] })],
    ['as a scope', list({ ...BILLING, scopes: [secret] })],
    ['as a field', list({ ...BILLING, [secret]: ['check'] })],
    ['twice', list({ ...BILLING, token: secret }, { ...OPERATOR, token: secret })],
    ['as a key pattern', list({ ...BILLING, key_patterns: [`${secret}(`] })],
    ['as a share', list({ ...BILLING, waiting_share: secret })],
  ])('never shows a token in its error: %s', (_where, text) => {
    expect(complaintAbout(text)).not.toContain('secret');
  });
});

function warningsFor(environment: Record<string, string>): readonly LogLine[] {
  const log = recordLog();
  warnOfOpenAccess(parseSettings(environment), log.logger);
  return log.lines;
}

test.each(['0.0.0.0', '::', '10.1.2.3', '128.0.0.1', 'fe80::1', 'service.example'])(
  'a service on %s without tokens logs once what is open, and what to set',
  (host) => {
    expect(warningsFor({ HOST: host })).toMatchObject([
      {
        level: 'warn',
        host,
        open: ['checks', 'releases', 'overrides of limits', '/debug', '/ui', '/metrics'],
        set: 'AUTH_TOKENS_FILE',
        msg: 'no authentication configured',
      },
    ]);
  },
);

test('the warning leaves out features that are switched off', () => {
  const [line] = warningsFor({
    DEBUG_ENDPOINTS: 'false',
    REQUESTS_CAN_SET_RATE: 'false',
    REQUESTS_CAN_MOD_QUEUE: 'false',
    REQUESTS_CAN_SET_WINDOW: 'false',
  });

  expect(line?.open).toEqual(['checks', 'releases', '/metrics']);
});

test.each(['127.0.0.1', '127.9.8.7', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1', 'localhost'])(
  'a service on %s, which only this machine reaches, logs no warning',
  (host) => {
    expect(warningsFor({ HOST: host })).toEqual([]);
  },
);

test('a service with tokens logs no warning', () => {
  expect(warningsFor({ AUTH_TOKENS_FILE: 'tokens.json' })).toEqual([]);
});

describe('rights to keys', () => {
  let matching: jest.SpiedFunction<KeyPatterns['matching']>;
  let rights: KeyRights;
  beforeEach(() => {
    matching = jest.spyOn(KeyPatterns.prototype, 'matching');
    rights = new KeyRights(
      new Map([
        ['a', ['a.*']],
        ['b', ['b.*', '.b']],
      ]),
    );
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const ask = (key: string): boolean[] => ['a', 'b', 'c'].map((name) => rights.allows(name, key));

  test('a key is matched only when it is new, for any caller', () => {
    expect([ask('a1'), ask('ab'), ask('none')]).toEqual([
      [true, false, false],
      [true, true, false],
      [false, false, false],
    ]);
    expect(matching).toHaveBeenCalledTimes(3);
    expect(ask('a1')).toEqual([true, false, false]);
    expect(ask('none')).toEqual([false, false, false]);
    expect(matching).toHaveBeenCalledTimes(3);
  });

  test('a key that is too long is not remembered', () => {
    const key = 'a'.repeat(513);
    expect([ask(key), ask(key)]).toEqual([
      [true, false, false],
      [true, false, false],
    ]);
    expect(matching).toHaveBeenCalledTimes(6);
  });
});
