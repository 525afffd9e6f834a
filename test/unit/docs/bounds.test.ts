import { MAX_BODY_BYTES } from '../../../src/http/intake/body-buffer.js';
import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';
import { UNSENT_BYTES } from '../../../src/http/replies/unsent-answers.js';
import {
  MAX_DEFERRED_IN_ALL,
  MAX_DEFERRED_WHILE_READ,
} from '../../../src/http/server/pipelines.js';
import { MAX_HEADER_BYTES } from '../../../src/http/server/server.js';
import { BOUNDS } from '../../../src/limiter/bounds.js';
import { TIMEOUTS } from '../../../src/net/timeouts.js';
import { grouped, kib, mib, seconds } from '../../support/docs/figures.js';
import { readPage } from '../../support/docs/pages.js';
import { tableRows } from '../../support/docs/tables.js';
import { parseSettings } from '../../../src/config/settings.js';
import { BYTES_OF_ELEMENT } from '../../../src/http/intake/json-array.js';

test('the figures of the bounds are those of the code', () => {
  const settings = parseSettings({});
  const figures: Readonly<Record<string, readonly string[]>> = {
    connections: [grouped(settings.MAX_CONNECTIONS)],
    'requests in flight on a connection': [String(settings.MAX_IN_FLIGHT_PER_CONNECTION)],
    'requests deferred for that': [String(MAX_DEFERRED_WHILE_READ), grouped(MAX_DEFERRED_IN_ALL)],
    'bytes of answers that clients do not read': Object.values(UNSENT_BYTES).map(mib),
    'the time in which a client reads nothing': [
      `${TIMEOUTS.requestMillis / 1000} to ${((TIMEOUTS.requestMillis / 1000) * 4) / 3} s`,
    ],
    'the head of a request, its URL, its body': [kib(MAX_HEADER_BYTES)],
    'bodies of bulk requests': Object.values(BODY_BYTES).map(mib),
    'the time to send a request': [TIMEOUTS.headMillis, TIMEOUTS.requestMillis].map(seconds),
    'the length of a key': [String(BOUNDS.keyBytes.max)],
    "the length of a group's name": [String(BOUNDS.groupBytes.max)],
    'keys, embedded': [grouped(settings.MAX_KEYS)],
    "request ids of a key's window": [grouped(settings.MAX_IDS_PER_KEY)],
    'held approvals of a key': [String(settings.MAX_HOLDS_PER_KEY)],
    "places in a key's queue": [String(settings.MAX_REQUESTS_IN_QUEUE)],
    'groups of a key': [String(settings.MAX_REQUESTS_IN_QUEUE)],
    'waiters of a replica': [grouped(settings.MAX_WAITERS)],
  };
  const rows = tableRows('SECURITY.md', ['What', 'Bound', 'Default', 'Beyond it', 'Metric']);
  const wrong = Object.entries(figures).filter(([what, texts]) => {
    const row = rows.find(([name]) => name === what)?.join(' ') ?? '';
    return texts.some((text) => !row.includes(text));
  });

  expect(wrong).toEqual([]);
  expect(readPage('docs/security.md')).toContain(`over ${mib(MAX_BODY_BYTES)} is a 413`);
});

const HEADER = ['Resource', 'One connection', 'One caller', 'Without a token', 'Bound by'];
const rows = tableRows('docs/security.md', HEADER);

const settings = parseSettings({});
const connections = settings.MAX_CONNECTIONS;
const inFlight = settings.MAX_IN_FLIGHT_PER_CONNECTION;
const HEADS_OF_ALL = `${Math.round((MAX_HEADER_BYTES * connections) / 1024 / 1024)} MiB`;
const REJECTED = '0: a 401 at once';

/** The text of the page for each resource of the HTTP ports, from the code. Other tests measure each figure. */
const OF_HTTP: Readonly<Record<string, readonly string[]>> = {
  // test/service/http/max-connections.test.ts; the idle time: transport-limits.test.ts
  connections: [
    ...['1', `${grouped(connections)}: all`, `${grouped(connections)}: all`],
    `\`MAX_CONNECTIONS\` of a port; an idle one ends after ${seconds(TIMEOUTS.idleMillis)}`,
  ],
  // test/service/http/transport-limits.test.ts
  'bytes of a head that is not complete': [
    kib(MAX_HEADER_BYTES),
    ...[HEADS_OF_ALL, HEADS_OF_ALL],
    `${kib(MAX_HEADER_BYTES)} on each connection, for ${seconds(TIMEOUTS.headMillis)}`,
  ],
  // test/service/http/pipelining.test.ts, and test/service/http/auth.test.ts for those without a token
  'requests served at a time': [
    ...[String(inFlight), `${inFlight} on each connection`, REJECTED],
    '`MAX_IN_FLIGHT_PER_CONNECTION`',
  ],
  // test/service/http/pipelining.test.ts
  'requests deferred behind these': [
    `${grouped(MAX_DEFERRED_WHILE_READ)}, and those in 64 KiB more`,
    ...[`${grouped(MAX_DEFERRED_IN_ALL)}: all`, `${grouped(MAX_DEFERRED_IN_ALL)}: all`],
    `${grouped(MAX_DEFERRED_IN_ALL)} of a port; one more ends its connection`,
  ],
  // test/service/http/unread-answers.test.ts
  'bytes of answers that are not read': [
    ...[
      mib(UNSENT_BYTES.connection),
      `${mib(UNSENT_BYTES.port)}: all`,
      `${mib(UNSENT_BYTES.port)}: all`,
    ],
    `${mib(UNSENT_BYTES.port)} of a port; nothing read for ${TIMEOUTS.requestMillis / 1000} to ${((TIMEOUTS.requestMillis / 1000) * 4) / 3} s`,
  ],
  // test/service/http/body-budget.test.ts, test/unit/http/requests-and-answers.test.ts
  [`bodies of bulk requests, with ${BYTES_OF_ELEMENT} bytes for each element`]: [
    ...[`one of ${mib(MAX_BODY_BYTES)}`, mib(BODY_BYTES.caller), REJECTED],
    `${mib(BODY_BYTES.all)} of a port; ${seconds(TIMEOUTS.requestMillis)} for a body to come`,
  ],
  // test/service/http/pipelining.test.ts, test/service/http/auth-waiting-share.test.ts
  'places to wait in': [
    ...[String(inFlight), grouped(Math.ceil(settings.MAX_WAITERS / 2)), REJECTED],
    '`MAX_WAITERS_PER_CALLER`, `waiting_share`; `MAX_WAITERS` for all',
  ],
};

test('the page gives the most that one caller can take of each resource of HTTP', () => {
  const ofHttp = rows.filter(([resource]) => resource?.startsWith('HTTP: '));

  expect(ofHttp).toEqual(
    Object.entries(OF_HTTP).map(([resource, cells]) => [`HTTP: ${resource}`, ...cells]),
  );
});
