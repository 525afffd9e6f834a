import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { PATIENT_STORE } from '../../support/both-limiters.js';
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

const redis = useRedis();
const folder = useTemporaryFolder();
afterAll(killReplicas);

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

const digestOf = async ({ url }: ReplicaProcess): Promise<string> =>
  ((await send(url, 'GET', '/debug')).json() as { Rules: { Digest: string } }).Rules.Digest;

describe('a rules file that is changed', () => {
  const doubtful = '  - { key_pattern: tenant-.* }\n';
  let path: string;
  let replicas: readonly [ReplicaProcess, ReplicaProcess];
  beforeAll(async () => {
    path = await fileWith(`keys:\n${doubtful}`);
    const settings = {
      ...PATIENT_STORE,
      CONFIG_FILE: path,
      WINDOW_MILLIS: '3600000',
      REDIS_URL: redis.url,
    };
    replicas = await Promise.all([startReplica(settings), startReplica(settings)]);
  });

  /** Puts another file in its place: nobody reads half of it. */
  async function replaceBy(text: string): Promise<void> {
    await rename(await fileWith(text), path);
  }

  /** Changes the file, and resolves when all replicas have loaded it. */
  async function reload(text: string, order = (): void => undefined): Promise<void> {
    const reloads = ({ log }: ReplicaProcess): number => log.filter(isReload).length;
    const before = replicas.map(reloads);
    await replaceBy(text);
    order();
    await until(() => replicas.every((replica, i) => reloads(replica) > before[i]!));
  }
  const isReload = ({ msg }: LogLine): boolean => msg === 'rules reloaded';
  const hangUp = (): void => {
    for (const replica of replicas) replica.signal('SIGHUP');
  };

  test('is read at once on SIGHUP, and its doubtful rules are logged as warnings, as at the start', async () => {
    const [replica] = replicas;
    const digest = await digestOf(replica);
    const warned = (message: string): Promise<LogLine> =>
      replica.logged(
        ({ level, msg, file }) => level === 'warn' && msg === message && file === path,
      );
    await warned(DOUBTFUL);
    await reload(`keys:\n  - { key_pattern: a }\n${doubtful}`, hangUp);
    await warned(DOUBTFUL.replace('rule 1', 'rule 2'));
    expect(await digestOf(replica)).not.toBe(digest);
  });

  // test/unit/config/watched-files.test.ts changes files in other ways.
  test('takes effect on all replicas, without a wrong decision', async () => {
    await reload(rulesWith(5), hangUp);
    const key = uniqueKey();
    const statuses: number[] = [];
    let isOver = false;
    const load = replicas.map(async ({ url }) => {
      while (!isOver) statuses.push((await send(url, 'POST', ratePath(key))).status);
    });
    const approved = (): number => statuses.filter((status) => status === 200).length;
    await until(() => approved() === 5 && statuses.includes(429));
    await reload(rulesWith(8));
    await until(() => approved() >= 8);
    isOver = true;
    await Promise.all(load);

    expect(approved()).toBe(8);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    const digests = await Promise.all(replicas.map(digestOf));
    expect(new Set(digests).size).toBe(1);
  });

  test('to an invalid one leaves the last good rules in force, and logs it', async () => {
    const [replica, other] = replicas;
    const refused = (one: ReplicaProcess): Promise<LogLine> =>
      one.logged(({ msg }) => String(msg).startsWith('rules not reloaded'));
    await reload(rulesWith(5), hangUp);
    const digest = await digestOf(replica);
    const stale = async (): Promise<unknown> =>
      (await scrape(replica.url)).valuesOf('ratelimit_rules_stale');
    await replaceBy('keys:\n  - key_pattern: a\n    window_milis: 7\n');
    // Both, since one that has not seen this file sees no change when the rules are back.
    const [{ level, reason }] = await Promise.all([refused(replica), refused(other)]);
    expect([level, reason]).toEqual([
      'error',
      `${path}:3:5: unknown field window_milis; did you mean window_millis?`,
    ]);
    expect(await digestOf(replica)).toBe(digest);
    expect(await stale()).toEqual({ ratelimit_rules_stale: 1 });

    await reload(rulesWith(5), hangUp);
    expect(await stale()).toEqual({ ratelimit_rules_stale: 0 });
  });
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
