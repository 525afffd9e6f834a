import { parseSettings } from '../../../src/config/settings.js';
import { HEADERS } from '../../../src/http/openapi/answer-headers.js';
import { openApiDocument } from '../../../src/http/openapi/document.js';
import { readPage } from '../../support/docs/pages.js';
import { inBackticks, tableRows } from '../../support/docs/tables.js';

const PAGE = 'docs/api.md';

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
  expect(new RegExp(`\`${name}[:\`]`).test(readPage(PAGE))).toBe(true);
});
