import { Tokens } from '../../../../src/service/callers/tokens.js';

const BILLING = { name: 'billing', token: 'token-of-billing', scopes: ['check', 'release'] };
const OPERATOR = { name: 'operator', token: 'token-of-operator', scopes: ['debug'] };

function parse(...entries: unknown[]): Tokens {
  return Tokens.parse(JSON.stringify(entries));
}

describe('a list of tokens', () => {
  test('knows the caller of a token, and what the caller may do', () => {
    const tokens = parse(BILLING, OPERATOR);

    expect(tokens.callerOf('token-of-billing')).toMatchObject({
      name: 'billing',
      scopes: ['check', 'release'],
    });
    expect(tokens.callerOf('token-of-operator')).toMatchObject({
      name: 'operator',
      scopes: ['debug'],
    });
    expect(tokens.names).toEqual(['billing', 'operator']);
  });

  test.each(['', 'token-of-billin', 'token-of-billing ', 'TOKEN-OF-BILLING', 'billing'])(
    'does not know %j',
    (token) => {
      expect(parse(BILLING, OPERATOR).callerOf(token)).toBeUndefined();
    },
  );

  test('may be empty, and then knows no caller', () => {
    expect(parse().callerOf('token-of-billing')).toBeUndefined();
  });

  test('may hold a token without scopes', () => {
    expect(parse({ ...BILLING, scopes: [] }).callerOf(BILLING.token)?.scopes).toEqual([]);
  });

  test('knows a caller by each of its tokens', () => {
    const tokens = parse({ ...BILLING, token: [BILLING.token, 'token-of-billing-to-come'] });

    expect(tokens.callerOf('token-of-billing-to-come')).toBe(tokens.callerOf(BILLING.token));
    expect(tokens.names).toEqual(['billing']);
  });

  test('without its file knows callers only as readers of the metrics', () => {
    const tokens = parse(BILLING).whileGone();

    expect(tokens.callerOf(BILLING.token)).toBeUndefined();
    expect(tokens.readerOf(BILLING.token)).toMatchObject({ name: 'billing' });
    expect(tokens.readerOf(OPERATOR.token)).toBeUndefined();
    expect(tokens.names).toEqual([]);
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

  test("do not include another caller's keys", () => {
    const tokens = parse(
      { ...BILLING, key_patterns: ['billing:.*', 'both'] },
      { ...OPERATOR, key_patterns: ['operator:.*', 'both'] },
    );
    const allowed = [BILLING, OPERATOR].map(({ token }) =>
      ['billing:1', 'operator:1', 'both', 'neither'].filter(tokens.callerOf(token)!.mayUse),
    );

    expect(allowed).toEqual([
      ['billing:1', 'both'],
      ['operator:1', 'both'],
    ]);
  });

  test('are found by an expression that would hang a backtracking engine', () => {
    const { mayUse } = parse({ ...BILLING, key_patterns: ['(a+)+b'] }).callerOf(BILLING.token)!;

    expect([mayUse('a'.repeat(8000)), mayUse(`${'a'.repeat(8000)}b`)]).toEqual([false, true]);
  });
});
