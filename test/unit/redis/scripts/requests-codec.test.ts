import { type RequestTerms, TERMS } from '../../../../src/limiter/request.js';
import { sayRequest } from '../../../../src/redis/scripts/requests-codec.js';

const EACH_TERM: Required<RequestTerms> = {
  hits: 2,
  holdMillis: 1000,
  holder: 'host:1',
  keepMillis: 2000,
  maxWaitMillis: 0,
  list: { kind: 'lane', name: 'a b', headStartMillis: 5 },
};

test('scripts are told each term of a request, and what says something of a check', () => {
  expect(Object.keys(EACH_TERM)).toEqual(TERMS);
  expect(sayRequest({ ...EACH_TERM, canWait: true, noPlace: false }, { number: 3 })).toEqual({
    ...EACH_TERM,
    list: { kind: 'lane', name: 'a%20b', headStartMillis: 5 },
    canWait: true,
    number: 3,
  });
});

test('a plain request says nothing', () => {
  const nothing = { hits: 1, holdMillis: undefined, canWait: false, takesRest: false };
  expect(JSON.stringify(sayRequest(nothing))).toBe('{}');
});
