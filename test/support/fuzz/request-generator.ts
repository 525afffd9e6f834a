import type { Random } from '../chaos/random.js';
import { answerTo, answerToNobody, answerToReport, type Asked, firstAnswer } from './answer-to.js';
import {
  BURST,
  type Caller,
  type Declared,
  FURTHER_NAMES,
  markOf,
  type Sort,
  SORTS,
  TREATMENTS,
} from './declared.js';

const PIECES = [
  'a', 'Z', '0', '/', '//', '.', '..', '%', '%25', '%2F', '{', '}', '{}', '?', '#', '&', '=', '+', ' ',
  '\0', '\n', '\r\n', '\t', '\x7f', '\x85', '\xa0', 'é', '日本', '🚰', '\ufeff', '\u2028', '\\', '"',
  "'", '<b>', '[', ']', '*', ':requests', ':queue', ';v=1', '@', '__proto__', 'canWait=true',
]; // prettier-ignore

/** Characters that need no encoding in the path of a URL, or that the service accepts without it. */
const BARE = /^[\w.~!$&'()*+,;=:@"<>[\]^`{|}-]$/;

const BADLY_ENCODED = [
  '%', '%2', '%zz', '%ff', '%c3', '%c3%28', '%ed%a0%80', '%c0%80', '%f5%80%80%80', '%u0041', '%%',
]; // prettier-ignore

/** A key of awkward characters, which `mark` makes unique. */
function awkwardKey(mark: string, random: Random): string {
  let key = mark;
  for (let pieces = random.whole(0, 4); pieces > 0; pieces -= 1) {
    key = random.chance(0.5) ? key + random.pick(PIECES) : random.pick(PIECES) + key;
  }
  return random.chance(0.02) ? key + 'x'.repeat(512 - Buffer.byteLength(key)) : key;
}

/** A key in one of its possible encodings in a path. */
function encodeKey(key: string, random: Random): string {
  switch (random.pick(['usual', 'all', 'least', 'some'])) {
    case 'usual':
      return encodeURIComponent(key);
    case 'all':
      return Array.from(key, (character) => escaped(character, random)).join('');
    case 'least':
      return Array.from(key, (c) => (BARE.test(c) ? c : escaped(c, random))).join('');
    default:
      return Array.from(key, (c) =>
        BARE.test(c) && random.chance(0.5) ? c : escaped(c, random),
      ).join('');
  }
}

/** A mark with an invalid encoding after it. */
function badlyEncoded(mark: string, random: Random): string {
  return mark + random.pick(BADLY_ENCODED);
}

function escaped(character: string, random: Random): string {
  return Array.from(Buffer.from(character), (byte) => {
    const hex = byte.toString(16).padStart(2, '0');
    return `%${random.chance(0.5) ? hex : hex.toUpperCase()}`;
  }).join('');
}

/** A request, and its expected answer. */
export interface ModelledRequest {
  /** One character for each byte. */
  readonly bytes: string;
  readonly isHead: boolean;
  readonly statuses: readonly number[];
  /** The limiter key, if it is a readable check. */
  readonly checkOf?: string | undefined;
  /** Of a check that has not exactly one. */
  readonly hits?: number | undefined;
  /** The limiter key, if it is a pause or a report that creates it. */
  readonly changeOf?: string | undefined;
  /** The limiter key, if it is a report. */
  readonly reportOf?: string | undefined;
  /** The correlation id that must be echoed. */
  readonly correlationId?: string | undefined;
  /** Whether it is the last request on its connection. */
  readonly isLast: boolean;
  /** Whether it is invalid HTTP, which ends the connection. Earlier requests may then stay unanswered. */
  readonly isUnreadable: boolean;
}

/** A request before headers and framing. */
interface Ask extends Asked {
  readonly method: string;
  readonly target: string;
  readonly checkOf?: string | undefined;
  readonly hits?: number | undefined;
  readonly changeOf?: string | undefined;
  readonly reportOf?: string | undefined;
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'M-SEARCH', 'PURGE']; // prettier-ignore
const WRONG_QUERIES = [
  'canWait=yes', 'canWait=', 'canWait=true&canWait=true', 'canWait[]=1', 'canWait[a]=1', 'canwait=1',
  'maxRequests=0', 'maxRequests=-1', 'maxRequests=1.5', 'maxRequests=1e3', 'maxRequests=1000000001',
  'maxRequests=99999999999999999999', 'maxRequests=%00', 'maxRequests=1&maxRequests=2', 'maxRequests=0x1',
  'MaxRequests=1', 'maxrequestsinqueue=1', 'maxRequestsInQueue=100001', 'maxRequestsInQueue=+1',
  'maxWaitMillis=5', 'canWait=0&maxWaitMillis=5', 'canWait=1&maxWaitMillis=-1', 'canWait=1&maxWaitMillis=31622400001',
  'canWait=1&maxwaitmillis=5', 'canWait=1&maxWaitMillis=5&maxWaitMillis=5',
  'maxRequestsInQueue=%F0%9F%9A%B0', 'maxRequestsInQueue=NaN', 'canWait', '%63anWait=x', 'maxRequests=%31%30%2E',
  `${'a&'.repeat(1000)}canWait=x`, 'hits=0', 'hits=-1', 'hits=1.5', 'hits=1000000001', 'hits=1&hits=2', 'hit=1',
  'holdMillis=999', 'holdMillis=86400001', 'holdMillis=1000.5', 'holdMillis=', 'holdMillis=1e4',
  'holdMillis=5000&holdMillis=5000', 'holdmillis=5000', 'hits=1&holdMillis=0',
  'windowMillis=0', 'windowMillis=31622400001', 'windowMillis=1.5', 'windowMillis=', 'windowmillis=5000',
  'windowMillis=5000&windowMillis=5000', 'pauseMillis=0', 'canWait=true&pauseMillis=5000',
  'lane=a&lane=b', 'lane[]=a', 'Lane=batch', 'group=', 'group=%00', 'group=%0A', `group=${'x'.repeat(65)}`,
  `group=${'%C3%A9'.repeat(33)}`, 'group=a&group=a', 'group[a]=b', 'group=%FF',
  'requestId=', 'requestId=7', 'requestId=%00', `requestId=${'x'.repeat(36)}`, 'requestId[]=1', 'requestid=1', 'request_id=1',
  'peek=yes', 'Peek=true', 'peek=1&peek=1', 'peek=true&maxRequests=5', 'peek=1&windowMillis=5000',
  'x=1', 'x=1&x=2', 'x[y][z]=1', '__proto__=1', '__proto__[canWait]=x', 'constructor=1', '%zz=%zz', '=', '?', 'a=%00',
  'a=1&'.repeat(500),
]; // prettier-ignore
const RIGHT_QUERIES = [
  '', '', '', 'canWait=true', 'canWait=FALSE', 'canWait=1&maxWaitMillis=0', 'canWait=1&maxWaitMillis=300', 'canWait=1&maxRequests=1000000000', 'maxRequests=7',
  'maxRequestsInQueue=0', 'maxRequests=%31', 'hits=1', '&&&',
  'holdMillis=7200000', 'hits=1&holdMillis=7200000', 'canWait=true&holdMillis=7200000',
  'windowMillis=14400000', 'hits=1&windowMillis=14400000', 'canWait=true&windowMillis=14400000',
]; // prettier-ignore
/** Queries of a PUT. None of these holds lapses during a run. */
const RIGHT_AMENDMENTS = [
  '',
  'hits=2',
  'hits=0',
  'holdMillis=7200000',
  'hits=1000000000&holdMillis=7200001',
  '&&&',
];
const WRONG_AMENDMENTS = [
  'hits=-1', 'hits=1000000001', 'hits=', 'hits=2&hits=2', 'hit=2', 'holdMillis=999', 'holdMillis=86400001',
  'hits=2&holdMillis=1.5', 'holdMillis[]=5000', 'canWait=true', 'maxRequests=5', 'x=1', '__proto__=1', 'a=%00',
]; // prettier-ignore
/** Parameters that rules allow, and others. */
const RULED_PARAMETERS = [
  'maxRequests=10', 'maxRequests=11', 'maxRequestsInQueue=5', 'maxRequestsInQueue=6', 'maxRequests=9&canWait=true',
  'maxRequests=10&maxRequestsInQueue=5', 'maxRequests=10&maxRequestsInQueue=6', 'maxRequests=11&maxRequestsInQueue=5',
  'holdMillis=7200000', 'holdMillis=7200001', 'maxRequests=10&holdMillis=7200000', 'maxRequests=10&holdMillis=7200001',
  'windowMillis=14400000', 'windowMillis=14400001', 'maxRequests=10&windowMillis=14400000', 'maxRequests=11&windowMillis=14400000',
]; // prettier-ignore
const RIGHT_PAUSES = [
  'pauseMillis=0',
  'pauseMillis=1',
  'pauseMillis=7200000',
  'pauseMillis=86400000',
  '&pauseMillis=%35&',
];
const WRONG_PAUSES = [
  '', '&&&', 'pauseMillis=-1', 'pauseMillis=86400001', 'pauseMillis=1.5', 'pauseMillis=', 'pauseMillis=1e3',
  'pauseMillis=5&pauseMillis=5', 'pausemillis=5', 'pauseMillis[]=5', 'pauseMillis=5&canWait=true', 'maxRequests=5', 'x=1',
  '__proto__=1', 'a=%00',
]; // prettier-ignore
/** Checks of keys whose limit has another algorithm, with hits up to the burst of a bucket, and above it. */
const ALGORITHM_PARAMETERS = [
  `hits=${BURST}`, `hits=${BURST + 1}`, 'hits=1000000000', `maxRequests=10&hits=${BURST}`, `maxRequests=2&hits=${BURST}`,
  'maxRequests=2&hits=2', 'maxRequests=1', 'windowMillis=14400000', 'windowMillis=1', `hits=${BURST + 1}&windowMillis=5000`,
  `hits=${BURST}&holdMillis=7200000`, `canWait=true&hits=${BURST}`, `canWait=true&hits=${BURST + 1}`,
]; // prettier-ignore
/** Lanes and groups, which only some keys have. */
const LIST_PARAMETERS = [
  'lane=interactive', 'lane=batch', 'lane=%62atch', 'lane=normal&hits=1', 'canWait=true&lane=interactive', 'lane=unknown', 'lane=',
  'lane=Batch', 'lane=batch&holdMillis=7200000', 'lane=__proto__', 'lane=%F0%9F%9A%B0',
  'group=gold', 'group=a', 'group=%C3%A9%F0%9F%9A%B0', 'group=__proto__', 'group=%20', 'group=%7B%7D%3A%2C%2A%5E~%40', 'canWait=1&group=a',
  `group=${'x'.repeat(64)}`, 'group=a&holdMillis=7200000', 'group=a&lane=batch',
]; // prettier-ignore
/** None of these ends during a run. */
const RIGHT_REPORTS = [
  'remaining=0', 'remaining=1', 'remaining=%32', 'remaining=1000000000000', 'remaining=5&resetMillis=7200000',
  'remaining=0&resetMillis=86400000', 'remaining=3&limit=default', 'limit=default&&remaining=3&resetMillis=3600000',
  ...FURTHER_NAMES.map((name) => `remaining=1&limit=${name}`), 'remaining=1&limit=unknown',
]; // prettier-ignore
const WRONG_REPORTS = [
  'remaining=-1', 'remaining=', 'remaining=1.5', 'remaining=1e3', 'remaining=1000000000001', 'remaining=1&remaining=1',
  'remaining[]=1', 'Remaining=1', 'resetMillis=5000', 'limit=default', 'remaining=1&resetMillis=0',
  'remaining=1&resetMillis=86400001', 'remaining=1&resetMillis=', 'remaining=1&resetmillis=5000', 'remaining=1&pauseMillis=5',
  'remaining=1&canWait=true', 'remaining=1&maxRequests=5', 'remaining=1&x=1', 'remaining=1&limit=default&limit=default',
]; // prettier-ignore
const NO_PATHS = [
  '/rate/', '/rates', '/Rate/x', '//rate/x', '/rate//x', '/rate/x/y/z', '/../rate/x',
  '/debugs', '/healthz/', '/HEALTHZ', '/readyz/x', '/metrics/', '/favicon.ico', '/%72ate/x', '/.env',
]; // prettier-ignore
const UNREADABLE = [
  'GET / HTTP/1.2\r\nHost: t\r\n\r\n', 'get /healthz HTTP/1.1\r\nHost: t\r\n\r\n',
  'FETCH /rate/KEY HTTP/1.1\r\nHost: t\r\n\r\n',
  'GET rate/unreadable HTTP/1.1\r\nHost: t\r\n\r\n', 'GET /rate/KEY x HTTP/1.1\r\nHost: t\r\n\r\n',
  'POST /rate/KEY HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'POST /rate/KEY HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n',
  'POST /rate/KEY HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody',
  'POST /rate/KEY HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n',
  'POST /rate/KEY HTTP/1.1\r\nHost: t\r\nContent-Length: 0x4\r\n\r\nbody',
  'POST /rate/KEY HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999999999999\r\n\r\n',
  'POST /rate/KEY HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, identity\r\n\r\n',
  'POST /rate/KEY HTTP/1.1\r\nHost: t\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
  'GET /rate/KEY HTTP/1.1\r\nHost: t\r\nX-A\0: x\r\n\r\n', 'GET /rate/KEY HTTP/1.1\r\nHost: t\r\n: x\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
]; // prettier-ignore
const CORRELATION_IDS = [
  'order-4712', 'x'.repeat(128), 'x'.repeat(129), '"}{\\', 'caf\xe9', 'a\tb', '\x80', '\xff\xfe', '%0d%0a', '-',
]; // prettier-ignore
const ORIGIN = 'Origin: http://t';
const JSON_TYPE = 'Content-Type: application/json';
const NOISE = [
  'Accept: */*', 'Connection: keep-alive', 'Upgrade: h2c',
  'Connection: x, y', 'Cookie: a=b; c', 'If-None-Match: *', 'Range: bytes=0-0', 'X-Empty:', 'TE: trailers',
  'Content-Encoding: gzip', JSON_TYPE, 'X-HTTP-Method-Override: DELETE',
  'X-Forwarded-For: 1.2.3.4', 'X-Latin: \xe9\xff', '__proto__: x', 'constructor: x', 'Expect: 100-continue', 'Expect: something',
  'X-Many: 1\r\n'.repeat(100).trimEnd(), `X-Big: ${'b'.repeat(2000)}`, ORIGIN, 'Proxy-Connection: x',
]; // prettier-ignore
/** Only for the last request of a connection, since Node does not read data in the same piece behind it. */
const UPGRADE = 'Connection: Upgrade, close\r\nUpgrade: websocket';
const WRONG_AUTHORIZATIONS = [
  'none', '', 'Bearer', 'Bearer ', 'Basic dXNlcjpwYXNz', 'Bearer nobody-has-this-token', 'Bearer \xe9',
]; // prettier-ignore

/** Makes requests with known answers. If a request names a key, the key is its own. */
export class RequestGenerator {
  #made = 0;

  /** @param declared the rules and tokens of the service, if it has any */
  constructor(
    private readonly name: string,
    private readonly random: Random,
    private readonly declared?: Declared,
  ) {}

  /**
   * A check of a caller that may make it.
   * @param statuses the possible statuses of its answer
   */
  check(key: string, query = '', statuses: readonly number[] = [200]): ModelledRequest {
    return this.#frameRight({ ...this.#checkTarget(key, query), statuses });
  }

  release(key: string, requestId: string, statuses: readonly number[]): ModelledRequest {
    return this.#frameRight({ ...this.#releaseTarget(key, requestId), statuses });
  }

  /** What a vendor says remains of a key's own limit, by a caller that may say it. */
  report(key: string, remaining: number): ModelledRequest {
    const ask = this.#reportTarget(key, `remaining=${remaining}`);
    return this.#frameRight({ ...ask, statuses: [200] });
  }

  metrics(): ModelledRequest {
    return this.#frameRight({ method: 'GET', target: '/metrics', statuses: [200], scope: 'debug' });
  }

  /** A caller's requests about a key, one of each kind: checks, a pause, a report, a correction, a release, and a
   * debug request. */
  allOf(caller: Caller, key: string, requestId: string): ModelledRequest[] {
    const asks: Ask[] = [
      { ...this.#checkTarget(key, ''), statuses: [200] },
      { ...this.#checkTarget(key, 'canWait=true&maxRequests=9'), statuses: [200] },
      { ...this.#pauseTarget(key, 'pauseMillis=7200000'), statuses: [200] },
      { ...this.#reportTarget(key, 'remaining=1'), statuses: [200] },
      { ...amendmentOf(this.#releaseTarget(key, requestId), 'hits=2'), statuses: [200] },
      { ...this.#releaseTarget(key, requestId), statuses: [200] },
      { ...this.#lookTarget(key), method: 'GET', statuses: [200] },
    ];
    return asks.map((ask) => this.#frameAs(caller, ask));
  }

  any(): ModelledRequest {
    const { random } = this;
    if (random.chance(0.06)) return this.#unreadable();
    if (random.chance(0.04)) return this.#withoutHost();
    const ask = this.#ask();
    if (random.chance(0.03) && ask.target.startsWith('/'))
      return this.#frame(this.#overlong(ask), 'none');
    return this.#frameAsAnybody(ask);
  }

  /** A new key. @param sort how the rules treat it, if there are any */
  freshKey(sort: Sort = 'open'): string {
    return awkwardKey(this.#mark(sort), this.random);
  }

  #mark(sort: Sort): string {
    this.#made += 1;
    const mark = `${this.name}-${this.#made}`;
    return this.declared ? mark + markOf(sort) : mark;
  }

  #checkTarget(key: string, query: string): Omit<Ask, 'statuses'> {
    const method = this.random.pick(['GET', 'POST']);
    const target = `/rate/${encodeKey(key, this.random)}${query && `?${query}`}`;
    const hits = Number(new URLSearchParams(query).get('hits') ?? 1);
    return { method, target, query, key, checkOf: key, hits, scope: 'check' };
  }

  /** The first check of a key. */
  #firstCheck(key: string, query: string): Ask {
    const statuses = firstAnswer(key, query);
    return { ...this.#checkTarget(key, query), statuses, isJudgedByLimits: true };
  }

  #pauseTarget(key: string, query: string): Omit<Ask, 'statuses'> {
    const target = `/rate/${encodeKey(key, this.random)}${query && `?${query}`}`;
    const changeOf = /pauseMillis=0(&|$)/.test(query) ? undefined : key;
    return { method: 'PUT', target, query, key, changeOf, scope: 'check', changesKey: true };
  }

  #reportTarget(key: string, query: string): Omit<Ask, 'statuses'> {
    return { ...this.#pauseTarget(key, query), reportOf: key };
  }

  #releaseTarget(key: string, requestId: string): Omit<Ask, 'statuses'> {
    const target = `/rate/${encodeKey(key, this.random)}/${requestId}`;
    return { method: 'DELETE', target, key, scope: 'release' };
  }

  #lookTarget(
    key: string,
    written = encodeKey(key, this.random),
  ): Omit<Ask, 'statuses' | 'method'> {
    return { target: `/debug/${written}`, key, scope: 'debug' };
  }

  #ask(): Ask {
    const { random } = this;
    const sort = random.pick(SORTS);
    const key = this.freshKey(sort);
    const encoded = encodeKey(key, random);
    const method = random.pick(METHODS);
    const read = random.pick(['GET', 'HEAD']);
    switch (random.whole(0, 14)) {
      case 0:
      case 1: {
        return { ...this.#checkTarget(key, random.pick(WRONG_QUERIES)), statuses: [400] };
      }
      case 2: {
        const long = `${key}${'é'.repeat(256)}`;
        return { ...this.#checkTarget(long, ''), statuses: [400] };
      }
      case 3: {
        const path = `/rate/${badlyEncoded(this.#mark(sort), random)}`;
        if (random.chance(0.3)) return { method: 'DELETE', target: `${path}/x`, statuses: [400] };
        return { method: random.pick(['GET', 'POST']), target: path, statuses: [400] };
      }
      case 4:
        return { method, target: random.pick(NO_PATHS), statuses: [404] };
      case 5: {
        if (method === 'GET' || method === 'POST') {
          return { ...this.#firstCheck(key, ''), method };
        }
        if (method === 'PUT' || random.chance(0.3)) {
          if (random.chance(0.5)) return this.#report(key);
          const isWrong = random.chance(0.3);
          const query = random.pick(isWrong ? WRONG_PAUSES : RIGHT_PAUSES);
          return { ...this.#pauseTarget(key, query), statuses: [isWrong ? 400 : 200] };
        }
        return { method, target: `/rate/${encoded}`, checkOf: key, statuses: [405] };
      }
      case 6: {
        const ask = this.#releaseTarget(key, encodeKey(random.pick(['x', '..', 'é', '/']), random));
        if (method === 'DELETE') return { ...ask, statuses: [404] };
        if (method === 'PUT' || random.chance(0.5)) {
          const isWrong = random.chance(0.3);
          const query = random.pick(isWrong ? WRONG_AMENDMENTS : RIGHT_AMENDMENTS);
          return { ...amendmentOf(ask, query), statuses: [isWrong ? 400 : 404] };
        }
        return { method, target: ask.target, statuses: [405] };
      }
      case 7: {
        const mark = this.#mark(sort);
        const ask = random.chance(0.3)
          ? this.#lookTarget(mark, badlyEncoded(mark, random))
          : this.#lookTarget(key, encoded);
        return { ...ask, method: read, statuses: [200] };
      }
      case 8: {
        const target = random.pick(['/healthz', '/healthz?x=%zz', '/readyz', '/', '/?x=%zz']);
        const status = target.startsWith('/?') || target === '/' ? 303 : 200;
        if (method === 'GET' || method === 'HEAD') return { method, target, statuses: [status] };
        return { method, target, statuses: [405] };
      }
      case 9:
        if (random.chance(0.8)) return { method: read, target: '/healthz', statuses: [200] };
        return { method: read, target: '/metrics', statuses: [200], scope: 'debug' };
      case 10:
        if (random.chance(0.9)) return { method: 'OPTIONS', target: '*', statuses: [404] };
        return { method: 'GET', target: '/debug', statuses: [200], scope: 'debug' };
      case 11: {
        const authority = random.pick(['http://t', 'https://u:p@t:1', 'HTTP://T', 'x://t']);
        const target = `${authority}/rate/${encodeURIComponent(key)}`;
        return { ...this.#firstCheck(key, ''), method: 'POST', target };
      }
      default: {
        const isRuled = this.declared !== undefined && random.chance(0.5);
        if (random.chance(isRuled && TREATMENTS[sort].order ? 0.8 : 0.1)) {
          return this.#firstCheck(key, random.pick(LIST_PARAMETERS));
        }
        if (isRuled && TREATMENTS[sort].algorithm) {
          return this.#firstCheck(key, random.pick(ALGORITHM_PARAMETERS));
        }
        return this.#firstCheck(key, random.pick(isRuled ? RULED_PARAMETERS : RIGHT_QUERIES));
      }
    }
  }

  #report(key: string): Ask {
    const isWrong = this.random.chance(0.3);
    const query = this.random.pick(isWrong ? WRONG_REPORTS : RIGHT_REPORTS);
    const ask = this.#reportTarget(key, query);
    if (isWrong) return { ...ask, statuses: [400] };
    return { ...ask, statuses: answerToReport(key, query), isJudgedByLimits: true };
  }

  #overlong({ method, target, checkOf }: Ask): Ask {
    const separator = target.includes('?') ? '&' : '?';
    const padding = 'x'.repeat(this.random.pick([8193, 9000]));
    return { method, target: target + separator + padding, checkOf, statuses: [414] };
  }

  #withoutHost(): ModelledRequest {
    const { method, target, checkOf } = this.#checkTarget(this.freshKey(), '');
    return this.#modelled(
      { method, target, checkOf, statuses: [400] },
      `${method} ${target} HTTP/1.1\r\n\r\n`,
    );
  }

  #unreadable(): ModelledRequest {
    const { random } = this;
    const isLarge = random.chance(0.2);
    const bytes = isLarge
      ? `GET /rate/KEY HTTP/1.1\r\nHost: t\r\nX-Big: ${'b'.repeat(random.pick([16_400, 20_000]))}\r\n\r\n`
      : random.pick(UNREADABLE);
    return {
      bytes: bytes.replace('KEY', this.#mark('open')),
      statuses: [isLarge ? 431 : 400],
      isHead: false,
      isLast: true,
      isUnreadable: true,
    };
  }

  /** A request of a caller that gets these statuses. */
  #frameRight(ask: Ask): ModelledRequest {
    const { declared } = this;
    if (!declared) return this.#frameAsAnybody(ask);
    const fitting = declared.callers.filter(
      (caller) => answerTo(ask, caller, declared) === ask.statuses,
    );
    return this.#frameAs(this.random.pick(fitting), ask);
  }

  /** A request of any caller, perhaps without the rights that it needs. */
  #frameAsAnybody(ask: Ask): ModelledRequest {
    const { random, declared } = this;
    if (!declared) {
      return this.#frame(ask, random.chance(0.1) ? random.pick(WRONG_AUTHORIZATIONS) : 'none');
    }
    if (random.chance(0.1)) {
      return this.#frame(
        { ...ask, statuses: answerToNobody(ask) },
        random.pick(WRONG_AUTHORIZATIONS),
      );
    }
    const [mighty, ...others] = declared.callers;
    return this.#frameAs(random.chance(0.4) ? mighty : random.pick(others), ask);
  }

  #frameAs(caller: Caller, ask: Ask): ModelledRequest {
    const { random, declared } = this;
    const statuses = declared ? answerTo(ask, caller, declared) : ask.statuses;
    const scheme = random.pick(['Bearer', 'Bearer', 'bearer', 'BEARER ']);
    return this.#frame({ ...ask, statuses }, `${scheme} ${random.pick(caller.token)}`);
  }

  /** Adds headers and a body that change nothing. */
  #frame(ask: Ask, authorization: string): ModelledRequest {
    const { random } = this;
    const { method, target } = ask;
    const isOld = random.chance(0.03);
    const headers = ['Host: t'];
    let correlationId: string | undefined;
    if (random.chance(0.3)) {
      const given = random.pick(CORRELATION_IDS);
      headers.push(`X-Correlation-ID: ${given}`);
      if (/^[ -~\xa0-\xff]{1,128}$/.test(given)) correlationId = given;
    }
    for (let more = random.pick([0, 0, 0, 1, 2]); more > 0; more -= 1) {
      const noise = random.pick(NOISE);
      // Two origins are none that the service knows.
      const isSecondOrigin = noise === ORIGIN && headers.includes(ORIGIN);
      if (!(isOld && noise === 'Connection: keep-alive') && !isSecondOrigin) headers.push(noise);
    }
    if (authorization !== 'none') headers.push(`Authorization: ${authorization}`);
    const isLast = isOld || random.chance(0.1);
    if (isLast && !isOld) headers.push(random.pick(['Connection: close', UPGRADE]));
    // If data still arrives when the server closes, TCP resets, and the client may lose the answer.
    const body = !isLast && random.chance(0.2) ? this.#body() : undefined;
    if (body) headers.push(body.header);
    // A check with both is rejected: `bodyParameters` asks that.
    const sent = body ? headers.filter((header) => header !== JSON_TYPE) : headers;
    const version = isOld ? '1.0' : '1.1';
    const head = `${method} ${target} HTTP/${version}\r\n${sent.join('\r\n')}\r\n\r\n`;
    const framed = this.#modelled(ask, head + (body?.bytes ?? ''));
    return { ...framed, correlationId, isLast };
  }

  /** A body that contains a request, which must not be served. */
  #body(): { header: string; bytes: string } {
    const { random } = this;
    const content = random.pick([
      'x',
      '{"canWait":true}',
      `POST /rate/${this.#mark('open')} HTTP/1.1\r\nHost: t\r\n\r\n`,
      '\0\xff'.repeat(30_000),
    ]);
    if (random.chance(0.5)) return { header: `Content-Length: ${content.length}`, bytes: content };
    const size = content.length.toString(16);
    const extension = random.pick(['', ';a=b', ';a="b"']);
    const trailer = random.pick(['', 'X-Trailer: x\r\n']);
    return {
      header: random.pick(['Transfer-Encoding: chunked', 'transfer-encoding:CHUNKED']),
      bytes: `${size}${extension}\r\n${content}\r\n0\r\n${trailer}\r\n`,
    };
  }

  #modelled(ask: Ask, bytes: string): ModelledRequest {
    const { method, statuses, checkOf, hits, changeOf, reportOf } = ask;
    const modelled = { statuses, checkOf, hits, changeOf, reportOf };
    return { ...modelled, bytes, isHead: method === 'HEAD', isLast: false, isUnreadable: false };
  }
}

/** The change of an approval that a release would end. */
function amendmentOf(release: Omit<Ask, 'statuses'>, query: string): Omit<Ask, 'statuses'> {
  const target = release.target + (query && `?${query}`);
  return { ...release, method: 'PUT', target, query, scope: 'check', isAmendment: true };
}
