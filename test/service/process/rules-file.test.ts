import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { extent } from '../../support/extent.js';
import { ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import {
  killReplicas,
  type LogLine,
  type ReplicaProcess,
  startFailingReplica,
  startReplica,
} from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const ENTRY = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const execute = promisify(execFile);

const redis = useRedis();
const folder = useTemporaryFolder();
afterEach(killReplicas);

const DOUBTFUL =
  'rule 1, key "tenant-.*", matches no other key than that text; did you mean key_pattern_is_regex: true?';

const rulesWith = (max: number, key = '.*'): string =>
  JSON.stringify({
    keys: [{ key_pattern: key, key_pattern_is_regex: true, max_requests_per_window: max }],
  });

async function fileWith(text: string): Promise<string> {
  const path = join(folder, uniqueKey());
  await writeFile(path, text);
  return path;
}

const start = (CONFIG_FILE: string): Promise<ReplicaProcess> =>
  startReplica({ CONFIG_FILE, WINDOW_MILLIS: '3600000', REDIS_URL: redis.url });

const isReload = ({ msg }: LogLine): boolean => msg === 'rules reloaded';

const digestOf = async ({ url }: ReplicaProcess): Promise<string> =>
  ((await send(url, 'GET', '/debug')).json() as { Rules: { Digest: string } }).Rules.Digest;

describe('a rules file that is changed', () => {
  // test/unit/config/watched-files.test.ts changes files in other ways.
  test('takes effect on all replicas, without a wrong decision', async () => {
    const path = await fileWith(rulesWith(5));
    const replicas = await Promise.all(Array.from({ length: extent(2, 3) }, () => start(path)));
    const key = uniqueKey();
    const statuses: number[] = [];
    let isOver = false;
    const load = replicas.map(async ({ url }) => {
      while (!isOver) statuses.push((await send(url, 'POST', ratePath(key))).status);
    });
    const approved = (): number => statuses.filter((status) => status === 200).length;
    await until(() => approved() === 5 && statuses.includes(429));
    await writeFile(path, rulesWith(8));
    await Promise.all(replicas.map((replica) => replica.logged(isReload)));
    await until(() => approved() >= 8);
    isOver = true;
    await Promise.all(load);

    expect(approved()).toBe(8);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    const digests = await Promise.all(replicas.map(digestOf));
    expect(new Set(digests).size).toBe(1);
  });

  test('is read at once on SIGHUP', async () => {
    const path = await fileWith(rulesWith(5));
    const replica = await start(path);
    const digest = await digestOf(replica);
    await writeFile(path, rulesWith(6));
    replica.signal('SIGHUP');
    await replica.logged(isReload);
    expect(await digestOf(replica)).not.toBe(digest);
  });

  test('to an invalid one leaves the last good rules in force, and logs it', async () => {
    const path = await fileWith(rulesWith(5));
    const replica = await start(path);
    const digest = await digestOf(replica);
    const stale = async (): Promise<unknown> =>
      (await scrape(replica.url)).valuesOf('ratelimit_rules_stale');
    await writeFile(path, 'keys:\n  - key_pattern: a\n    window_milis: 7\n');
    const { level, reason } = await replica.logged(({ msg }) =>
      String(msg).startsWith('rules not reloaded'),
    );
    expect([level, reason]).toEqual([
      'error',
      `${path}:3:5: unknown field window_milis; did you mean window_millis?`,
    ]);
    expect(await digestOf(replica)).toBe(digest);
    expect(await stale()).toEqual({ ratelimit_rules_stale: 1 });

    await writeFile(path, rulesWith(5));
    replica.signal('SIGHUP');
    await replica.logged(isReload);
    expect(await stale()).toEqual({ ratelimit_rules_stale: 0 });
  });
});

test('doubtful rules are logged as warnings, at the start and at each reload', async () => {
  const doubtful = '  - { key_pattern: tenant-.* }\n';
  const path = await fileWith(`keys:\n${doubtful}`);
  const replica = await start(path);
  await replica.logged(
    ({ level, msg, file }) => level === 'warn' && msg === DOUBTFUL && file === path,
  );
  await writeFile(path, `keys:\n  - { key_pattern: a }\n${doubtful}`);
  replica.signal('SIGHUP');
  await replica.logged(
    ({ level, msg }) => level === 'warn' && msg === DOUBTFUL.replace('rule 1', 'rule 2'),
  );
});

test('SIGHUP ends the process if there is no rules file', async () => {
  const replica = await startReplica({});
  expect(await replica.kill('SIGHUP')).toBe('SIGHUP');
});

test('an invalid file at the start ends the process with one line', async () => {
  const path = await fileWith('keys:\n  - key_pattern: (\n    key_pattern_is_regex: true\n');
  expect(await startFailingReplica({ CONFIG_FILE: path })).toEqual({
    code: 1,
    stdout: '',
    stderr:
      `${path}:2:18: keys[0].key_pattern must be a regular expression of RE2: ` +
      'error parsing regexp: missing closing ): `(`\n',
  });
});

describe('a command about rules', () => {
  async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    try {
      return { code: 0, ...(await execute(process.execPath, [ENTRY, ...args], { env: {} })) };
    } catch (error) {
      return error as { code: number; stdout: string; stderr: string };
    }
  }

  test('checks a file', async () => {
    const path = await fileWith(rulesWith(5));
    const { code, stdout } = await run('--check-config', path);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\S+: 1 rule, digest [0-9a-f]{12}\n$/);
    const explained = await run('--check-config', path, '--explain', 'a');
    expect(explained.stdout).toContain('\nthe key "a": 1 rule applies\n');
  });

  test('warns of rules that take long for a new key, and names the slowest rule', async () => {
    const cheap = '{ key_pattern: "tenant-.*", key_pattern_is_regex: true }';
    const costly = '"(?i).*([ab].{0,100}){3}z"';
    const path = await fileWith(
      `keys:\n  - ${cheap}\n  - { key_pattern: ${costly}, key_pattern_is_regex: true, name: slow }\n`,
    );
    const { code, stdout } = await run('--check-config', path);
    expect(code).toBe(0);
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/: 2 rules, digest [0-9a-f]{12}$/),
      expect.stringMatching(
        /^warning: a new key takes up to \d+\.\d ms to match, more than 1 ms; the most costly is rule 2 slow, expression "/,
      ),
      '',
    ]);
  });

  test('says in one line what is wrong with a file', async () => {
    const path = await fileWith('keys: 7');
    expect(await run('--check-config', path)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `${path}:1:7: keys must be a list\n`,
    });
  });

  test('names the option or the setting whose file it can not read', async () => {
    const path = join(folder, 'nofile.yaml');
    const problem = `got ${JSON.stringify(path)} (ENOENT), takes a file to read\n`;
    const { stderr } = await run('--check-config', path);
    expect(stderr).toBe(`--check-config: ${problem}`);
    await expect(
      execute(process.execPath, [ENTRY, '--explain', 'a'], { env: { CONFIG_FILE: path } }),
    ).rejects.toMatchObject({ stderr: `CONFIG_FILE: ${problem}` });
  });

  test('warns of doubtful rules', async () => {
    const path = await fileWith('keys:\n  - { key_pattern: tenant-.* }\n');
    const { code, stdout } = await run('--check-config', path);
    expect(code).toBe(0);
    expect(stdout.split('\n').slice(1)).toEqual([`warning: ${DOUBTFUL}`, '']);
  });

  test('explains which rules apply to a key, their order and the result', async () => {
    const path = await fileWith(
      'keys:\n' +
        '  - { key_pattern: "a.*", key_pattern_is_regex: true, max_requests_per_window: 7, name: all }\n' +
        '  - { key_pattern: b, window_millis: 9 }\n' +
        '  - { key_pattern: ab, window_millis: 50, requests_can_set_rate: false, shadow: true }\n',
    );
    const { code, stdout } = await run('--check-config', path, '--explain', 'ab');
    expect(code).toBe(0);
    expect(stdout.split('\n').slice(1)).toEqual([
      'the key "ab": 2 rules apply, in this order',
      '  rule 1 all, expression "a.*": {"max_requests_per_window":7}',
      '  rule 3, key "ab": {"window_millis":50,"requests_can_set_rate":false,"shadow":true}',
      '  window: 50 ms; to be set up to 31622400000',
      '  approvals per window: 7; to be set not by requests',
      '  places in the queue: 400; to be set up to 100000',
      '  holds of approvals: up to 86400000 ms',
      '  corrections of hits: up to ten times the approvals per window',
      '  shadow mode: checks are never denied',
      '',
    ]);
  });

  test('shows control characters and changes of direction in keys, rules and options as escapes', async () => {
    const hidden = '\u001b[2J\u009b1m\u202e\u2028';
    const escapes = '\\u001b[2J\\u009b1m\\u202e\\u2028';
    const path = await fileWith(JSON.stringify({ keys: [{ key_pattern: hidden }] }));
    const { code, stdout } = await run('--check-config', path, '--explain', hidden);
    expect(code).toBe(0);
    expect(stdout.split('\n').slice(1, 3)).toEqual([
      `the key "${escapes}": 1 rule applies`,
      `  rule 1, key "${escapes}": {}`,
    ]);
    const wrong = [await run(`--${hidden}`), await run('--check-config', hidden)];
    expect(wrong.map(({ stderr }) => stderr.split('\n')[0])).toEqual([
      `unknown option --${escapes}`,
      `--check-config: got "${escapes}" (ENOENT), takes a file to read`,
    ]);
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
    const { stdout } = await run('--check-config', path, '--explain', 'a');
    const { stdout: without } = await run('--check-config', path, '--explain', 'b');

    expect(stdout.split('\n')).toContain(line);
    expect(without.split('\n')).not.toContain(line);
  });
});
