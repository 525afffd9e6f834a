import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { parseCommandLine } from '../../../src/app/command-line.js';
import { runRulesCommand } from '../../../src/app/rules-command.js';
import { parseSettings } from '../../../src/config/settings.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';

const DOUBTFUL =
  'rule 1, key "tenant-.*", matches no other key than that text; did you mean key_pattern_is_regex: true?';

const folder = useTemporaryFolder();

async function fileWith(text: string): Promise<string> {
  const path = join(folder, uniqueKey());
  await writeFile(path, text);
  return path;
}

/** The lines that `--check-config FILE`, with `--explain KEY` and `--group NAME`, prints. */
async function printed(file: string, key?: string, group?: string): Promise<string[]> {
  return (await runRulesCommand({ file, key, group }, parseSettings({}))).split('\n');
}

test('checks a file', async () => {
  const path = await fileWith('keys: [{ key_pattern: .*, key_pattern_is_regex: true }]');
  expect(await printed(path)).toEqual([
    expect.stringMatching(/^\S+: 1 rule, digest [0-9a-f]{12}$/),
  ]);
  expect(await printed(path, 'a')).toContain('the key "a": 1 rule applies');
});

test('warns of rules that take long for a new key, and names the slowest rule', async () => {
  const cheap = '{ key_pattern: "tenant-.*", key_pattern_is_regex: true }';
  const costly = '"(?i).*([ab].{0,100}){3}z"';
  const path = await fileWith(
    `keys:\n  - ${cheap}\n  - { key_pattern: ${costly}, key_pattern_is_regex: true, name: slow }\n`,
  );
  expect(await printed(path)).toEqual([
    expect.stringMatching(/: 2 rules, digest [0-9a-f]{12}$/),
    expect.stringMatching(
      /^warning: a new key takes up to \d+\.\d ms to match, more than 1 ms; the most costly is rule 2 slow, expression "/,
    ),
  ]);
});

test('says in one line what is wrong with a file', async () => {
  const path = await fileWith('keys: 7');
  await expect(printed(path)).rejects.toThrow(`${path}:1:7: keys must be a list`);
});

test('names the option or the setting whose file it can not read', async () => {
  const path = join(folder, 'nofile.yaml');
  const problem = `got ${JSON.stringify(path)} (ENOENT), takes a file to read`;
  await expect(printed(path)).rejects.toThrow(`--check-config: ${problem}`);
  const settings = parseSettings({ CONFIG_FILE: path });
  await expect(runRulesCommand({ file: undefined, key: 'a' }, settings)).rejects.toThrow(
    `CONFIG_FILE: ${problem}`,
  );
});

test('warns of doubtful rules', async () => {
  const path = await fileWith('keys:\n  - { key_pattern: tenant-.* }\n');
  expect((await printed(path)).slice(1)).toEqual([`warning: ${DOUBTFUL}`]);
});

test('explains which rules apply to a key, their order and the result', async () => {
  const path = await fileWith(
    'keys:\n' +
      '  - { key_pattern: "a.*", key_pattern_is_regex: true, max_requests_per_window: 7, name: all }\n' +
      '  - { key_pattern: b, window_millis: 9 }\n' +
      '  - { key_pattern: ab, window_millis: 50, requests_can_set_rate: false, shadow: true }\n',
  );
  expect((await printed(path, 'ab')).slice(1)).toEqual([
    'the key "ab": 2 rules apply, in this order',
    '  rule 1 all, expression "a.*": {"max_requests_per_window":7}',
    '  rule 3, key "ab": {"window_millis":50,"requests_can_set_rate":false,"shadow":true}',
    '  window: 50 ms; to be set up to 31622400000',
    '  approvals per window: 7; to be set not by requests',
    '  places in the queue: 400; to be set up to 100000',
    '  holds of approvals: up to 86400000 ms',
    '  corrections of hits: up to ten times the approvals per window',
    '  shadow mode: checks are never denied',
  ]);
});

test('shows control characters and changes of direction in keys, rules and options as escapes', async () => {
  const hidden = '\u001b[2J\u009b1m\u202e\u2028';
  const escapes = '\\u001b[2J\\u009b1m\\u202e\\u2028';
  const path = await fileWith(JSON.stringify({ keys: [{ key_pattern: hidden }] }));
  expect((await printed(path, hidden)).slice(1, 3)).toEqual([
    `the key "${escapes}": 1 rule applies`,
    `  rule 1, key "${escapes}": {}`,
  ]);
  expect(() => parseCommandLine([`--${hidden}`])).toThrow(`unknown option --${escapes}\n`);
  await expect(printed(hidden)).rejects.toThrow(
    `--check-config: got "${escapes}" (ENOENT), takes a file to read`,
  );
});

test('explains what a group has to itself', async () => {
  const path = await fileWith(
    'keys:\n' +
      '  - key_pattern: a\n' +
      '    queue: { fair: true, weights: { gold: 4 } }\n' +
      '    limits: [{ name: t, per: group, max_requests_per_window: 5, window_millis: 9, maxima: { gold: 7 } }]\n' +
      '  - { key_pattern: b }\n',
  );
  const ofKey = '  limit t: 5 requests per 9 ms; for each group, of "gold" 7';
  expect(await printed(path, 'a')).toContain(ofKey);
  expect((await printed(path, 'a', 'gold')).slice(-2)).toEqual([
    'the group "gold": weight 4',
    '  limit t: 7 requests per 9 ms',
  ]);
  expect((await printed(path, 'b', 'gold')).at(-1)).toBe(
    'the group "gold": the key has no fair groups',
  );
});

test.each([
  ['max_hold_millis: 5000', '  holds of approvals: up to 5000 ms'],
  ['requests_can_hold: false', '  holds of approvals: none'],
  ['max_corrected_hits: 70', '  corrections of hits: up to 70'],
  ['window_millis_ceiling: 5000', '  window: 1000 ms; to be set up to 5000'],
  ['requests_can_set_window: false', '  window: 1000 ms; to be set not by requests'],
  ['requests_can_pause: true', '  pauses: without the scope configure'],
  ['denied_takes_rest: true', '  denied checks take what is left of a window'],
  ['max_wait_millis: 1500', '  checks of gateways wait for up to 1500 ms'],
  ['algorithm: sliding_window', '  algorithm: sliding_window, 10 steps'],
  ['algorithm: token_bucket, burst: 5', '  algorithm: token_bucket, burst 5'],
  ['algorithm: token_bucket', '  window: 1000 ms; to be set not by requests'],
  ['calendar: week', '  window: calendar week, UTC; to be set not by requests'],
  [
    'limits: [{ name: day, max_hits_per_window: 9, calendar: day, time_zone: Asia/Tokyo }]',
    '  limit day: 9 hits per calendar day, Asia/Tokyo',
  ],
  [
    'limits: [{ name: hour, max_hits_per_window: 9, window_millis: 3600000, algorithm: token_bucket }]',
    '  limit hour: 9 hits per 3600000 ms; token_bucket, burst 1',
  ],
  [
    'limits: [{ name: hour, max_hits_per_window: 9, window_millis: 3600000 }]',
    '  limit hour: 9 hits per 3600000 ms',
  ],
  [
    'limits: [{ name: day, max_requests_per_window: 5, window_millis: 9, releases_return: false }]',
    '  limit day: 5 requests per 9 ms; releases return nothing',
  ],
  [
    'queue: { lanes: [{ name: user, head_start_millis: 9 }, { name: batch }] }',
    '  lanes: user with a head start of 9 ms, batch',
  ],
  [
    'queue: { lanes: [{ name: b }] }, limits: [{ name: d, max_hits_per_window: 5, window_millis: 9, lanes: [b] }]',
    '  limit d: 5 hits per 9 ms; only of the lane b',
  ],
  ['queue: { fair: true }', '  fair groups'],
  [
    'queue: { fair: true, max_requests_in_queue_per_group: 9, weights: { gold: 4 } }',
    '  fair groups, up to 9 waiters each; weights "gold" 4',
  ],
])('explains %s', async (field, line) => {
  const path = await fileWith(`keys:\n  - { key_pattern: a, ${field} }\n`);
  expect(await printed(path, 'a')).toContain(line);
  expect(await printed(path, 'b')).not.toContain(line);
});
