import { SECRETS } from '../../../src/config/secret-files.js';
import { parseSettings, settingsSchema } from '../../../src/config/settings.js';
import { readPage } from '../../support/docs/pages.js';
import { inBackticks, tableRows } from '../../support/docs/tables.js';

const PAGE = 'docs/configuration.md';
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

  test('say what each setting takes and means', () => {
    for (const [variable, , takes, meaning, ...more] of rows) {
      expect([variable, takes === '', meaning === '', more]).toEqual([variable, false, false, []]);
    }
  });
});

test("the README's settings exist, and have these defaults", () => {
  const few = tableRows('README.md', ['Setting', 'Default', 'For']);
  expect(few).toHaveLength(8);
  for (const [variable, value] of few) {
    const name = inBackticks(variable)!;
    expect(Object.keys(settingsSchema.shape)).toContain(name);
    expect([name, inBackticks(value)]).toEqual([name, defaultOf(name)]);
  }
});

test.each(SECRETS)('the page says that %s can come from a file', (name) => {
  expect(readPage(PAGE)).toContain(`\`${name}_FILE\``);
});
