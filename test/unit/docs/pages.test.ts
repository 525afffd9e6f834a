import { existsSync, statSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { status } from '@grpc/grpc-js';

import { pages, readPage, ROOT } from '../../support/docs/pages.js';
import { inBackticks, tableRows } from '../../support/docs/tables.js';
import { type ErrorCode, errorRow, ERRORS } from '../../../src/service/errors.js';
import { parseSettings, settingsSchema } from '../../../src/config/settings.js';
import { HEADERS } from '../../../src/http/openapi/answer-headers.js';
import { openApiDocument } from '../../../src/http/openapi/document.js';
import { loadScript } from '../../../src/redis/scripts/script-loader.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { listItems } from '../../support/docs/lists.js';
import { SECRETS } from '../../../src/config/secret-files.js';
import { grpcStatusOf } from '../../../src/grpc/call-log.js';
import {
  ListingForbiddenError,
  StoreFullError,
  StoreUnavailableError,
  UnavailableError,
} from '../../../src/limiter/errors.js';
import { toLimiterError } from '../../../src/redis/availability/store-errors.js';
import { serviceErrorFor, STORE_FAILURES } from '../../../src/service/store-failures.js';
import { askedTracing, traceSettingsSchema } from '../../../src/tracing/trace-settings.js';

const LINK = /\[[^\]]*\]\(([^)\s]+)\)/g;
const FENCE = /^(```|~~~)[\s\S]*?^\1/gm;

/** The anchors of a page, as GitHub makes them from its headings. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, title = ''] of readPage(page)
    .replaceAll(FENCE, '')
    .matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** What is wrong with a link of a page to another file or place, or undefined. */
function problemOf(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
  if (file.startsWith('..')) return `${target}: is outside of the project`;
  if (!existsSync(join(ROOT, file))) return `${target}: there is no ${file}`;
  if (anchor === undefined) return undefined;
  if (statSync(join(ROOT, file)).isDirectory()) return `${target}: a folder has no anchors`;
  return anchorsOf(file).has(anchor) ? undefined : `${target}: ${file} has no such heading`;
}

function brokenLinks(page: string): string[] {
  const text = readPage(page).replaceAll(FENCE, '');
  return [...text.matchAll(LINK)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => problemOf(page, target))
    .filter((problem) => problem !== undefined);
}

test.each(pages())('the links of %s have targets', (page) => {
  expect(brokenLinks(page)).toEqual([]);
});

const linesOf = (page: string): number => readPage(page).split('\n').length - 1;

/** The most lines of a page in docs, so that a reader with one task need not search it. */
const MAX_LINES = 300;
/** Of the pages of docs and the clients together. A fact has one place: what is told twice goes first. */
const MAX_LINES_IN_ALL = 7000;
test(`a page has at most ${MAX_LINES} lines, and all have ${MAX_LINES_IN_ALL}`, () => {
  const all = pages().filter((page) => /^(?:docs|clients)\//.test(page));

  expect(all.filter((page) => linesOf(page) > MAX_LINES)).toEqual([]);
  expect(all.map(linesOf).reduce((sum, lines) => sum + lines)).toBeLessThanOrEqual(
    MAX_LINES_IN_ALL,
  );
});

test('CONTRIBUTING names files of sources that are there', () => {
  const [, table = ''] = readPage('CONTRIBUTING.md').split(/^## Where to look$/m);
  const named = [...table.matchAll(/`([a-z][\w-]*\/[\w./-]+\.(?:ts|lua|js))`/g)].map(
    ([, path = '']) => (/^(?:lua|src|ui|test)\//.test(path) ? path : `src/${path}`),
  );
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  expect(named.length).toBeGreaterThan(30);
});

test('a link to a missing file or heading, or to a path outside the project, is found', () => {
  expect(problemOf('README.md', 'docs/none.md')).toContain('there is no');
  expect(problemOf('docs/checks.md', '../README.md#no-such-heading')).toContain('no such heading');
  expect(problemOf('docs/checks.md', '../../README.md')).toContain('outside');
  expect(problemOf('docs/checks.md', '../README.md#compared-with-others')).toBeUndefined();
});

describe('commands that get packages', () => {
  const FOLDERS = ['.github', 'clients/node/examples', 'docs/examples', 'deploy', 'k8s'];
  const GETTING =
    /\b(?:npx|pnpx|bunx|uvx|npm (?:exec|install|i|add)|(?:pnpm|yarn|bun) (?:add|dlx|x)|pipx (?:install|run)|(?:uv )?pip3? install|uv (?:add|tool install)|go (?:get|install|run))((?: +[^\s`'"&|;)<>#]+)+)/g;

  /** The names that a registry resolves, and so not files, folders and options. */
  const namesIn = (text: string): string[] =>
    [...text.matchAll(GETTING)].flatMap(([, words = '']) =>
      words
        .trim()
        .split(/ +/)
        // A file of Go is none either.
        .filter((word) => !/^[-./~$]|\.go$/.test(word)),
    );

  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(folder, name),
    ),
  ).filter((path) => statSync(join(ROOT, path)).isFile());
  const shown = pages().filter((page) => page !== 'CHANGELOG.md');

  /** What the tests run the guides with, in these versions. */
  const tested = readPage('clients/python/tests/requirements.txt').split('\n');

  // Nobody has published ours yet. Whoever registers the name would get what is in the environment, such as SLUICE_TOKEN.
  test('name no package of a registry, but in the version that the tests run', () => {
    const found = [...new Set([...shown, ...files, 'src/app/command-line.ts', 'Dockerfile'])]
      .map(
        (path) => [path, namesIn(readPage(path)).filter((name) => !tested.includes(name))] as const,
      )
      .filter(([, names]) => names.length > 0);
    expect(found).toEqual([]);
  });

  test.each([
    ['npx sluice-client run deploy', ['sluice-client', 'run', 'deploy']],
    ['run: npm install --global sluice-client@1', ['sluice-client@1']],
    ['`python -m pip install -U sluice-client`', ['sluice-client']],
    ['go get example.com/sluice@latest && go run ./x.go', ['example.com/sluice@latest']],
    ['npm ci && npm install -g ./clients/node; npx ./clients/node', []],
    ['`npx` does not wait', []],
  ])('%s names %j', (text, names) => {
    expect(namesIn(text)).toEqual(names);
  });
});

const itemsOfLlmsTxt = readPage('llms.txt')
  .split('\n')
  .filter((line) => line.startsWith('- '));
const pathsOfLlmsTxt = itemsOfLlmsTxt.flatMap((item) =>
  [...item.matchAll(LINK)].map(([, target = '']) => target),
);
const pagesOfDocs = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));

test('llms.txt names each page of docs once, and only files that exist', () => {
  expect(itemsOfLlmsTxt.filter((item) => !/\): \S/.test(item))).toEqual([]);
  expect(pathsOfLlmsTxt.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  const listed = pathsOfLlmsTxt.filter((path) => path.startsWith('docs/')).sort();
  expect(listed).toEqual(pagesOfDocs.map((name) => `docs/${name}`).sort());
});

test('the sidebar of the site has each page of docs once', () => {
  const sidebar = readPage('docs/site/.vitepress/sidebar.mjs');
  const links = [...sidebar.matchAll(/'\/([\w-]+)'/g)].map(([, name]) => `${name}.md`);
  const others = ['chart.md', 'benchmarks.md', 'changelog.md', 'contributing.md'];

  expect(links.sort()).toEqual([...pagesOfDocs, ...others, 'security-reports.md'].sort());
});

describe('examples', () => {
  const FOLDERS = ['clients/node/examples', 'docs/examples'];
  const FENCE = /^```(?:js|python|go|bash)\n([\s\S]*?)^```$/gm;
  const PROGRAMS: Readonly<Record<string, string>> = {
    mjs: 'node',
    py: 'python3',
    go: 'go run',
    sh: 'sh',
  };

  const paths = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder)).map((file) => `${folder}/${file}`),
  );

  /** The tests of the Python and the Go client run the examples of these pages. */
  const OF_THEIR_OWN_TESTS = [
    ...['clients/python/README.md', 'clients/go/README.md'],
    ...['docs/python.md', 'docs/go.md', 'docs/vendor-headers.md'],
    ...['docs/limited-requests.md', 'docs/web-frameworks.md'],
  ];

  test('code on a page is an example, or a part of one that the page links to', () => {
    const examples = paths.map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
    const seen = new Set<string>();
    const foreign = pages().flatMap((page) => {
      const text = readPage(page);
      const links = [...text.matchAll(LINK)].map(([, target = '']) => join(dirname(page), target));
      for (const link of links) seen.add(link);
      return [...text.matchAll(FENCE)].flatMap(([, code = '']) => {
        const shown = examples.find((one) => `\n${one.text}`.includes(`\n${code}`));
        if (shown?.text === code) seen.add(shown.path);
        const isOfItsOwn = OF_THEIR_OWN_TESTS.includes(page);
        const isKnown =
          isOfItsOwn || (shown && (shown.text === code || links.includes(shown.path)));
        return isKnown ? [] : [`${page}: ${code.slice(0, 60)}`];
      });
    });
    expect(foreign).toEqual([]);
    expect(examples.length).toBeGreaterThan(0);
    expect(paths.filter((path) => !seen.has(path))).toEqual([]);
  });

  test('a page has the command that runs each example', () => {
    const commands = pages().map(readPage).join('\n');

    for (const path of paths) {
      const program = PROGRAMS[path.split('.').at(-1)!];
      expect(commands).toContain(`${program} ${path}`);
    }
  });
});

/** The program in BENCHMARKS.md of each column of docs/comparison.md. Not measured: undefined. */
const PROGRAMS = {
  Sluice: 'sluice',
  GoCC: 'gocc',
  'Envoy ratelimit': 'envoy-ratelimit',
  Limitador: 'limitador-redis',
  Gubernator: undefined,
  'rate-limiter-flexible': 'rate-limiter-flexible',
  Bottleneck: undefined,
};
/** What is measured of a library includes its server. */
const SERVERS: Readonly<Record<string, string>> = { 'rate-limiter-flexible': ' behind Express' };
const COLUMNS = ['', ...Object.keys(PROGRAMS)];

/** The decisions per second of a program in a section of BENCHMARKS.md, in whole thousands. */
function measured(section: string, program: string): string {
  const [, text = ''] = readPage('BENCHMARKS.md').split(`### Throughput: ${section}\n`);
  const [, figure = ''] = new RegExp(`^\\| ${program} +\\| ([\\d,]+) `, 'm').exec(text) ?? [];
  return `${Math.round(Number(figure.replace(',', '')) / 1000)},000`;
}

test.each([
  ['decisions/s, one key', 'one key, all approved'],
  ['decisions/s, 5,000 keys', '5,000 keys, all approved'],
])('the row of %s has the figures of the benchmarks', (label, section) => {
  const row = tableRows('docs/comparison.md', COLUMNS).find(([first]) => first === label);

  expect(row?.slice(1)).toEqual(
    Object.values(PROGRAMS).map((program) =>
      program ? measured(section, program) + (SERVERS[program] ?? '') : '',
    ),
  );
});

test.each([
  // The column of its CPU, from the decisions on.
  ['CPU of a decision', 'Throughput: 5,000 keys, all approved', 3],
  ['CPU of a call over gRPC', "Envoy's protocol: 5,000 keys,", 1],
])('the row of %s has the figures of the benchmarks', (label, section, column) => {
  const [, text = ''] = readPage('BENCHMARKS.md').split(`### ${section}`);
  const cpuOf = (program?: string): string => {
    const cells = new RegExp(`^\\| ${program} +\\| (.*) \\|$`, 'm').exec(text)?.[1]?.split('|');
    const server = column === 1 ? '' : (SERVERS[program ?? ''] ?? '');
    return cells ? `${Math.round(parseFloat(cells[column] ?? ''))} µs${server}` : '';
  };
  const row = tableRows('docs/comparison.md', COLUMNS).find(([first]) => first === label);

  expect(row?.slice(1)).toEqual(Object.values(PROGRAMS).map(cpuOf));
});

/** The headers of an error, as the page writes them. */
function headersOf(code: ErrorCode): string {
  const { retryAfter } = errorRow(code);
  const { header } = errorRow(code);
  const seconds = retryAfter === 'window' ? 'until there may be room' : retryAfter;
  return [
    ...(seconds === undefined ? [] : [`\`Retry-After\`: ${seconds}`]),
    ...(header === undefined
      ? []
      : [header === 'Connection' ? '`Connection: close`' : `\`${header}\``]),
  ].join(', ');
}

/** The sections of the page, in their order: to try again, to fix the request, to give up. */
function sectionOf(code: ErrorCode): number {
  const { status } = errorRow(code);
  if ([429, 503].includes(status)) return 0;
  const isOfTarget = ['PATH_NOT_FOUND', 'PATH_OF_OTHER_PORT', 'SLASH_IN_KEY'].includes(code);
  return isOfTarget || [400, 405, 408, 413, 414, 415, 431].includes(status) ? 1 : 2;
}

test('the tables of errors in docs/errors-and-headers.md equal the errors of the service, row by row', () => {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).toSorted(
    (one, other) => sectionOf(one) - sectionOf(other),
  );

  expect(
    tableRows('docs/errors-and-headers.md', ['Status', 'Code', '`error`', 'When', 'Header']),
  ).toEqual(
    codes.map((code) => {
      const { message, when } = ERRORS[code];
      const { status } = errorRow(code);
      return [String(status), `\`${code}\``, `\`${message}\``, when, headersOf(code)];
    }),
  );
});

describe('docs/checks.md and docs/errors-and-headers.md', () => {
  const PAGE = 'docs/checks.md';

  const document = openApiDocument(parseSettings({}));

  test('the page has the paths of the document', () => {
    const rows = tableRows(PAGE, ['Request', 'Answers']).map(([requests = '']) => requests);
    const onPage = rows.flatMap((requests) => requests.match(/\/[\w.{}/]*/g) ?? []);
    // Only the page at /docs uses the files that it loads.
    const paths = Object.keys(document.paths ?? {}).filter((path) => path !== '/docs/{file}');

    expect([...new Set(onPage)].sort()).toEqual(paths.sort());
  });

  test('the page has the parameters of checks', () => {
    const rows = tableRows(PAGE, ['Parameter of a check', 'Takes', 'Default']);
    const parameters = document.paths?.['/rate/{key}']?.post?.parameters ?? [];
    const names = parameters.flatMap((each) =>
      'in' in each && each.in === 'query' ? [each.name] : [],
    );

    expect(names.length).toBeGreaterThan(0);
    expect(rows.map(([name]) => inBackticks(name))).toEqual(names);
  });

  test.each(Object.keys(HEADERS))('the page has the header %s', (name) => {
    expect(new RegExp(`\`${name}[:\`]`).test(readPage('docs/errors-and-headers.md'))).toBe(true);
  });
});

describe('docs/redis-names.md', () => {
  const PAGE = 'docs/redis-names.md';

  test('the page lists the names in Redis that the code builds', () => {
    const naming = new KeyNaming('sluice:');
    const names = naming.namesOf('job');
    const { state, requests, pastRequests, queue, records, lapses, ends, replicas } = names;
    const { leader, wakeChannel } = names;
    const onPage = tableRows(PAGE, ['Name', 'Holds']).map(([name]) => inBackticks(name));
    const [firstGeneration] = pastRequests;
    expect(onPage).toEqual([
      state,
      requests,
      firstGeneration,
      `${names.took(0).replace(/0$/, '<0 or 1>')}[:<limit>[:group:<name>]]`,
      queue,
      names.headsOf('lane').replace(/lane$/, '<lane, group or stopped>'),
      // Scripts build these names.
      `${state}:groups`,
      `${state}:groups:idle`,
      records,
      lapses,
      ends,
      replicas,
      names.history(0).replace('0', '<minute>'),
      `mutex:${leader}`,
      wakeChannel,
      naming.reports.name,
      naming.reports.channel,
    ]);
  });

  test('the page lists the fields of the state that the scripts write', () => {
    const { text } = loadScript('check');
    const calls = text.matchAll(
      /(?:redis\.call\(\s*'HSET', (?:state|state_key),|return \{\s*'start',)(.*?)\n? *[)}]\n/gs,
    );
    const added = text.matchAll(/\b(?:add|replace)\(values, (?:\w+, )?\w+, '([a-z_]+)'/g);
    const ofState = [...[...calls].flatMap(([, list = '']) => quoted(list)), ...matches(added)];
    const listed = text.matchAll(
      /\nlocal (?:QUEUE|HOLDS|EXTRA|SAYS_NOTHING_ALONE|FIELDS) = \{(.*?)\}\n/gs,
    );
    const inJson = [...listed].flatMap(([, list = '']) => quoted(`${list},`));
    const fieldsOfExtra = matches(text.matchAll(/json\.add\((?:\w+|''), '([a-z_]+)'/g));
    const fields = tableRows(PAGE, ['Field', 'Meaning']).map(([field]) => inBackticks(field));
    const written = new Set([...ofState, ...inJson, ...fieldsOfExtra]);
    expect(inJson.length).toBeGreaterThan(20);
    expect([...new Set(fields)].sort()).toEqual([...written].sort());
  });

  /** What the first group of an expression has matched. */
  function matches(found: Iterable<RegExpExecArray>): string[] {
    return [...found].map(([, group = '']) => group);
  }

  function quoted(list: string): string[] {
    return [...list.matchAll(/'([a-z_]+)'\s*,/g)].map(([, field = '']) => field);
  }
});

describe('docs/settings.md', () => {
  const PAGE = 'docs/settings.md';
  const DEFAULTS: Readonly<Record<string, unknown>> = parseSettings({});

  const rows = tableRows(PAGE, ['Variable', 'Default', 'Takes', 'Meaning']);

  function defaultOf(name: string): string | undefined {
    return name in DEFAULTS ? String(DEFAULTS[name]) : undefined;
  }

  describe('the tables of settings', () => {
    test('name every variable that Sluice reads, once each, and no other', () => {
      const names = rows.map(([variable]) => inBackticks(variable));

      expect([...names].sort()).toEqual(Object.keys(settingsSchema.shape).sort());
    });

    test('have the default of each setting', () => {
      for (const [variable, value] of rows) {
        const name = inBackticks(variable)!;
        expect([name, inBackticks(value)]).toEqual([name, defaultOf(name)]);
      }
    });
  });

  test.each(SECRETS)('the page says that %s can come from a file', (name) => {
    expect(readPage(PAGE)).toContain(`\`${name}_FILE\``);
  });
});

describe('docs/reliability.md', () => {
  type Kind = keyof typeof STORE_FAILURES;

  /** Errors of each kind, as limiters throw them. */
  const THROWN: Readonly<Record<Kind, Error>> = {
    store_unavailable: new StoreUnavailableError(),
    store_full: new StoreFullError(),
    key_full: new UnavailableError('key_full'),
    too_many_waiters: new UnavailableError('too_many_waiters'),
    shutting_down: new UnavailableError('shutting_down'),
    handed_over: new UnavailableError('handed_over'),
    listing_forbidden: new ListingForbiddenError({}),
    fault: new Error('a fault'),
  };

  const PAGE = 'docs/reliability.md';
  const failures = Object.values(STORE_FAILURES);

  test('the list of failures in docs/reliability.md equals the failures of the service, one by one', () => {
    expect(listItems(PAGE, '## What callers get')).toEqual(
      failures.map(({ when, code }) => `**${ERRORS[code].status} \`${code}\`**: ${when}`),
    );
  });

  test('docs/reliability.md says how failures are called in the metrics and over gRPC', () => {
    const codes = failures.map(({ code }) => code.toLowerCase());
    expect(Object.keys(STORE_FAILURES).slice(0, -1)).toEqual(codes.slice(0, -1));
    const page = readPage(PAGE).replaceAll(/\s+/g, ' ');
    for (const { code } of failures) {
      const http = ERRORS[code].status;
      const grpc = status[grpcStatusOf(code)];
      expect(page).toMatch(new RegExp(`\\ban? ${http} (?:is )?\`${grpc}\``));
    }
  });

  test.each(Object.entries(THROWN) as [Kind, Error][])(
    'an error of the kind %s has the code of its row',
    (kind, error) => {
      expect(serviceErrorFor(error).code).toBe(STORE_FAILURES[kind].code);
    },
  );

  test.each(Object.entries(STORE_FAILURES))(
    "Redis's replies in the row %s give its code",
    (_, row) => {
      const replies = row.when.match(/(?<=`)[A-Z]+(?=`)/g) ?? [];
      for (const reply of replies) {
        const error = Object.assign(new Error(`${reply} of Redis`), { name: 'ReplyError' });
        expect([reply, serviceErrorFor(toLimiterError(error)).code]).toEqual([reply, row.code]);
      }
    },
  );
});

const rows = tableRows('docs/tracing.md', ['Variable of OpenTelemetry', 'Default', 'Takes']);
const variablesOf = (cell = ''): string[] => cell.match(/OTEL_\w+/g) ?? [];
/** These have no default value in the schema. */
const DEFAULTS_ELSEWHERE = /^OTEL_TRACES_EXPORTER$|^OTEL_SERVICE_NAME$/;

/** A default as the table writes it; undefined if there is none, or it is empty. */
function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.join();
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

test('the table of variables names all variables that Sluice takes, and no other', () => {
  const names = rows.flatMap(([variables]) => variablesOf(variables));

  expect(names.sort()).toEqual(Object.keys(traceSettingsSchema.shape).sort());
});

test('the table of variables has the default of each variable', () => {
  const defaults: Readonly<Record<string, unknown>> = askedTracing({
    OTEL_TRACES_EXPORTER: 'otlp',
  })!.settings;
  const checked = rows.filter(([variables]) =>
    variablesOf(variables).every((name) => !DEFAULTS_ELSEWHERE.test(name)),
  );

  expect(checked.length).toBeGreaterThan(10);
  for (const [variables, text] of checked) {
    const [name] = variablesOf(variables);
    expect([name, inBackticks(text)]).toEqual([name, textOf(defaults[name!])]);
  }
});
