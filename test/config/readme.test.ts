import { readFileSync } from 'node:fs';

import { parseSettings, settingsSchema } from '../../src/config.js';

const README = new URL('../../README.md', import.meta.url);
const HEADER = ['Variable', 'Default', 'Takes', 'Meaning'];

/** The cells of each row of the table of settings. */
function settingsTable(): string[][] {
  const lines = readFileSync(README, 'utf8').split('\n');
  const header = lines.findIndex((line) => cellsOf(line).join() === HEADER.join());
  if (header === -1) throw new Error(`README.md has no table of ${HEADER.join(', ')}`);
  const rows: string[][] = [];
  for (const line of lines.slice(header + 2)) {
    if (!line.startsWith('|')) break;
    rows.push(cellsOf(line));
  }
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

describe("the README's table of settings", () => {
  test('names every variable that Sluice reads, each once, and no other', () => {
    const names = settingsTable().map(([variable]) => inBackticks(variable));

    expect([...names].sort()).toEqual(Object.keys(settingsSchema.shape).sort());
  });

  test('has the default of each', () => {
    const inReadme = settingsTable().map(([variable, value]) => [
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

  test('says of each what it takes and what it means', () => {
    for (const [variable, , takes, meaning, ...more] of settingsTable()) {
      expect([variable, takes === '', meaning === '', more]).toEqual([variable, false, false, []]);
    }
  });
});
