import { readdirSync, readFileSync } from 'node:fs';

import { parseSettings } from '../../../src/config/settings.js';
import { BYTES_OF_ELEMENT, MAX_BODY_BYTES } from '../../../src/http/intake/json-array.js';
import { UNSENT_BYTES } from '../../../src/http/replies/unsent-answers.js';
import {
  MAX_DEFERRED_IN_ALL,
  MAX_DEFERRED_WHILE_READ,
} from '../../../src/http/server/pipelines.js';
import { MAX_HEADER_BYTES } from '../../../src/http/server/server.js';
import { BOUNDS } from '../../../src/limiter/bounds.js';
import { TIMEOUTS } from '../../../src/net/connection-bounds.js';
import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';
import { readPage } from '../../support/docs/pages.js';
import { tableRows } from '../../support/docs/tables.js';

/** How pages write numbers, sizes and times. */
const grouped = (count: number): string => count.toLocaleString('en');
const kib = (bytes: number): string => `${bytes / 1024} KiB`;
const mib = (bytes: number): string => `${bytes / 1024 / 1024} MiB`;
const seconds = (millis: number): string => `${millis / 1000} s`;

/** Where a bound is attacked: a folder below `test`, and the title of a test of its files, or a part of one. */
type Attack = readonly [folder: string, title: string];

const HTTP = 'service/http';
const GRPC = 'service/grpc';
const BEHAVIOUR = 'support/behaviour';
const UNIT = 'unit';

const OF_SECURITY: Readonly<Record<string, readonly Attack[]>> = {
  connections: [[HTTP, 'drops a third connection, counts it, and goes on']],
  'requests in flight on a connection': [[HTTP, "take at most the connection's share of places"]],
  'requests deferred for that': [
    [HTTP, 'leave places for others if there are 10,001 of them'],
    [HTTP, 'are deferred up to a common bound for all connections'],
  ],
  'bytes of answers that clients do not read': [
    [HTTP, 'take little memory on the %s port, whoever sends as many requests'],
    [UNIT, 'beyond the bound of the port the connection goes that'],
  ],
  'the time in which a client reads nothing': [
    [HTTP, 'a client that reads nothing for the time that it may take'],
  ],
  'the head of a request, its URL, its body': [
    [HTTP, 'HEADERS_TOO_LARGE'],
    [HTTP, 'in its URL is served up to 8192 bytes, and counts nothing above'],
    [HTTP, 'is read and discarded while its check waits'],
  ],
  'bodies of bulk requests': [
    [HTTP, 'all bodies together take at most the budget of the port'],
    [HTTP, 'one caller takes at most its share'],
    [HTTP, 'the bodies of a connection are read one after the other'],
    [UNIT, 'is parsed by a few KiB at a time'],
  ],
  'the time to send a request': [
    [HTTP, 'and %s is cut with a 408'],
    [HTTP, 'a body that does not come is cut in time'],
  ],
  'the length of a key': [[HTTP, 'keys at their bounds']],
  "the length of a group's name": [[HTTP, 'of the key %s with %s is rejected']],
  'keys, embedded': [[HTTP, 'a key without room in the store harms no other']],
  'keys in Redis': [['service/topologies', 'fails checks of new keys, and decides on known keys']],
  "request ids of a key's window": [
    [BEHAVIOUR, 'a check takes one of the ids that may be stored, whatever its hits'],
  ],
  'held approvals of a key': [
    [BEHAVIOUR, 'fail a check that does not wait, and leave others alone'],
  ],
  'the length of a hold': [[HTTP, 'by rules, which win over the settings']],
  'the hits of a correction': [[HTTP, 'CORRECTION_TOO_LARGE']],
  'the length of a pause': [[HTTP, 'with "%s" is a 400, and changes nothing']],
  'the length of a report of what remains': [[HTTP, 'with "%s" is a 400, and begins no key']],
  'request ids of earlier windows': [
    ['redis/lua', 'is answered for three windows, and for two leases'],
  ],
  "places in a key's queue": [[BEHAVIOUR, 'a full queue denies a check, and does not count it']],
  "places of a group in a key's queue": [
    [UNIT, 'a group has places of its own, within those of the queue'],
  ],
  'groups of a key': [[UNIT, 'a group has places of its own, within those of the queue']],
  'groups of a key that count by themselves': [
    ['redis/behaviour', 'groups with limits of their own'],
  ],
  'waiters of a replica': [[HTTP, 'fails a further waiter of any key, and holds another when one']],
  'waiters of a caller on a replica': [
    [HTTP, 'a caller may take half of them, and the others stay free'],
  ],
  'limits that requests set': [
    [HTTP, 'an override that %s is forbidden to a token with only the scope'],
    [HTTP, '%s=%s is rejected'],
    [HTTP, 'OVERRIDE_TOO_LARGE'],
  ],
  'checks on their way to Redis': [[UNIT, 'is at most 20,000']],
  'keys whose rules are remembered': [
    [UNIT, 'keys that are not asked for are forgotten after two more'],
  ],
  'log lines about rejected tokens': [
    [HTTP, 'a burst of rejections has one log line at once and one a second'],
  ],
  'series of metrics': [['service/metrics', 'has no keys, whatever they look like, and no series']],
};

const OF_GRPC: Readonly<Record<string, readonly Attack[]>> = {
  connections: [[GRPC, 'drops a connection above it, counts it, and goes on']],
  'connections that have not begun': [
    [GRPC, 'that has not begun is closed for a later one if a port has 1000'],
    [GRPC, 'that %s is closed after the time limit of a head'],
  ],
  'headers of a stream': [
    [GRPC, 'of over 8 KiB are rejected if the client %s'],
    [GRPC, 'can not be repeated from a table'],
  ],
  'streams that the client resets before their answer': [
    [GRPC, 'loses its connection at once, also if it connects again'],
    [UNIT, 'an address that is beyond its bound gets four connections a second'],
    [UNIT, 'a second without resets makes room for 500 more'],
  ],
  'streams of health and reflection': [
    [GRPC, 'are at most three on a connection, and other connections are'],
  ],
  calls: [
    [GRPC, 'MAX_IN_FLIGHT_PER_CONNECTION calls wait on a connection'],
    [GRPC, 'is rejected at once without a token, and with a wrong one'],
    [GRPC, 'are refused after ten that %s, and it ends'],
  ],
  'streams whose message has not come': [
    [GRPC, 'is dropped for a later one if a port has 2000'],
    [GRPC, 'exceeds its deadline after the time limit of a request'],
    [UNIT, 'bytes beyond the maximum end as many of the first items as necessary'],
  ],
  'answers that are not read': [
    [GRPC, 'an answer that is not read within the time limit of a request'],
    [UNIT, 'an item beyond the maximum ends the first'],
  ],
  'a message': [
    [GRPC, 'get RESOURCE_EXHAUSTED if they are too many'],
    [GRPC, 'are an invalid argument if they have too many fields'],
    [GRPC, 'with 101 descriptors'],
  ],
  'messages of calls that wait for their turn': [
    [UNIT, 'a caller has 16 MiB for all its bodies together'],
    [UNIT, 'all callers have 64 MiB together'],
    [UNIT, 'a call takes 16 KiB besides its message'],
  ],
  'checks of calls with several descriptors': [
    [GRPC, 'at most 1000 checks of a connection are under way'],
    [GRPC, 'at most 4000 checks of all are under way'],
  ],
};

/** The rows of "What one caller can take at most" that have no setting; OF_HTTP has the others. */
const OF_CALLER: Readonly<Record<string, readonly Attack[]>> = {
  'HTTP and gRPC: rejected requests': [
    [HTTP, 'are dropped after ten that %s, and it ends with the next answer'],
    [HTTP, 'are taken in many ticks, between which a check with a token is answered'],
    [GRPC, 'are taken in many ticks, between which a call with a token is answered'],
    [UNIT, 'connections are read until a tick has its requests'],
  ],
  'Parsing: event loop for bodies of bulk requests': [
    [UNIT, 'is parsed by a few KiB at a time'],
    [UNIT, 'at %f ms for each element a tick handles %i'],
  ],
  'Key matching: event loop for the keys of bulk requests and gRPC calls': [
    [HTTP, 'single checks are answered while a bulk request is %s'],
    [GRPC, 'a check of another connection is answered before the last of 20 large'],
    [UNIT, 'at %f ms for each element a tick handles %i'],
  ],
  'Key matching: event loop for the key of one check': [
    [UNIT, 'warns of rules that take long for a new key'],
  ],
  'Embedded limiter: memory for keys and approvals': [
    ['service/process', 'a service with a small heap survives checks of new keys'],
    ['service/process', 'a process with a small heap survives any number of checks'],
  ],
};

/** Prose with a figure, and where it is attacked. */
const OF_PROSE: Readonly<Record<string, readonly Attack[]>> = {
  'may be idle for 75 s': [[HTTP, 'an idle connection is kept longer than']],
  'over 1 MiB is a 413': [[HTTP, 'that becomes too large gets a 413']],
  '100 are served at a time': [[HTTP, "take at most the connection's share"]],
  'a ping once a minute, and is closed if it does not answer within 20 s': [
    [GRPC, 'a connection that answers no ping is closed, and one that'],
  ],
  'gets a GOAWAY, and ends within 10 s': [[GRPC, 'for %s ends within 10 s']],
  '16 or more visible ASCII characters': [[UNIT, 'a short token']],
};

const sources = new Map<string, string>();

/** The text of all files of a folder but this one, which names the titles. */
function sourcesOf(folder: string): string {
  const known = sources.get(folder);
  if (known !== undefined) return known;
  const path = `test/${folder}`;
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' });
  const texts = files
    .filter((file) => file.endsWith('.ts') && !import.meta.url.endsWith(file))
    .map((file) => readFileSync(`${path}/${file}`, 'utf8').replaceAll(/\\(?=')/g, ''));
  const source = texts.join('\n');
  sources.set(folder, source);
  return source;
}

const LISTS = [OF_SECURITY, OF_GRPC, OF_CALLER, OF_PROSE];

test.each(LISTS.flatMap((list) => Object.entries(list)))(
  'the bound of %s is attacked by tests',
  (_what, attacks) => {
    const missing = attacks.filter(([folder, title]) => !sourcesOf(folder).includes(title));

    expect(missing).toEqual([]);
  },
);

test('each row of the bounds is attacked', () => {
  const security = tableRows('SECURITY.md', ['What', 'Bound', 'Default', 'Beyond it', 'Metric']);
  const grpc = tableRows('docs/bounds.md', [
    ...['What', 'Without a token', 'One connection', 'One caller', 'All together', 'Beyond it'],
  ]);
  const caller = tableRows('docs/bounds.md', [
    ...['Resource', 'One connection', 'One caller', 'Without a token', 'Bound by'],
  ]);
  const names = (rows: string[][]): string[] => rows.map(([name]) => name ?? '').sort();
  const listed = (list: object): string[] => Object.keys(list).sort();

  expect(names(security)).toEqual(listed(OF_SECURITY));
  expect(names(grpc)).toEqual(listed(OF_GRPC));
  expect(names(caller).filter((name) => !name.startsWith('HTTP: '))).toEqual(listed(OF_CALLER));
  const prose = ['docs/bounds.md', 'docs/security.md']
    .map(readPage)
    .join('\n')
    .replaceAll(/\s+/g, ' ');
  expect(listed(OF_PROSE).filter((text) => !prose.includes(text))).toEqual([]);
});

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
    'groups of a key that count by themselves': [grouped(settings.MAX_GROUPS_PER_KEY)],
    'waiters of a replica': [grouped(settings.MAX_WAITERS)],
  };
  const rows = tableRows('SECURITY.md', ['What', 'Bound', 'Default', 'Beyond it', 'Metric']);
  const wrong = Object.entries(figures).filter(([what, texts]) => {
    const row = rows.find(([name]) => name === what)?.join(' ') ?? '';
    return texts.some((text) => !row.includes(text));
  });

  expect(wrong).toEqual([]);
  expect(readPage('docs/bounds.md')).toContain(`over ${mib(MAX_BODY_BYTES)} is a 413`);
});

const HEADER = ['Resource', 'One connection', 'One caller', 'Without a token', 'Bound by'];
const rows = tableRows('docs/bounds.md', HEADER);

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
