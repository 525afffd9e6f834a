import { readFileSync } from 'node:fs';

import { SECRETS } from '../../src/config/secret-files.js';
import { parseSettings, settingsSchema } from '../../src/config/settings.js';
import { readmeTable } from '../support/readme-table.js';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

function settingsTables(): string[][] {
  return readmeTable(['Variable', 'Default', 'Takes', 'Meaning']);
}

/** What stands between a cell's backticks, or undefined where there are none. */
function inBackticks(cell: string | undefined): string | undefined {
  return /^`([^`]+)`$/.exec(cell ?? '')?.[1];
}

describe("the README's tables of settings", () => {
  test('name every variable that Sluice reads, each once, and no other', () => {
    const names = settingsTables().map(([variable]) => inBackticks(variable));

    expect([...names].sort()).toEqual(Object.keys(settingsSchema.shape).sort());
  });

  test('have the default of each', () => {
    const inReadme = settingsTables().map(([variable, value]) => [
      inBackticks(variable),
      inBackticks(value),
    ]);

    const defaults: Record<string, unknown> = parseSettings({});
    const names = Object.keys(settingsSchema.shape);
    expect(Object.fromEntries(inReadme)).toEqual(
      Object.fromEntries(
        names.map((name) => [name, name in defaults ? String(defaults[name]) : undefined]),
      ),
    );
  });

  test('say of each what it takes and what it means', () => {
    for (const [variable, , takes, meaning, ...more] of settingsTables()) {
      expect([variable, takes === '', meaning === '', more]).toEqual([variable, false, false, []]);
    }
  });
});

test.each(SECRETS)('the README says that %s can come from a file', (name) => {
  expect(README).toContain(`\`${name}_FILE\``);
});
