import { readFileSync } from 'node:fs';

import { SECRETS } from '../../src/config/secret-files.js';
import { parseSettings, settingsSchema } from '../../src/config/settings.js';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const HEADER = ['Variable', 'Default', 'Takes', 'Meaning'];

/** The cells of each row of all tables of settings together. */
function settingsTables(): string[][] {
  const lines = README.split('\n');
  const rows: string[][] = [];
  for (const [i, line] of lines.entries()) {
    if (cellsOf(line).join() !== HEADER.join()) continue;
    const below = lines.slice(i + 2);
    const end = below.findIndex((row) => !row.startsWith('|'));
    rows.push(...below.slice(0, end).map(cellsOf));
  }
  if (rows.length === 0) throw new Error(`README.md has no table of ${HEADER.join(', ')}`);
  return rows;
}

function cellsOf(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
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
