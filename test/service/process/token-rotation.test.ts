import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { bearer, tokenFile, writeTokens } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const OLD = 'token-that-was-good';
const NEW = 'token-that-will-be-good';
const CLIENTS = 4;

/** @param token one, or several that are valid at the same time */
const caller = (token: string | string[]): object => ({
  name: 'client',
  token,
  scopes: ['check', 'debug'],
});

const folder = useTemporaryFolder();
afterEach(killReplicas);

type Change = (token: string | string[]) => Promise<void>;

/** Each way to change the file. */
const WAYS: readonly [string, () => Promise<[path: string, change: Change]>][] = [
  [
    'with another file in its place',
    async () => {
      const path = await tokenFile(folder, caller(OLD));
      return [path, (token) => writeTokens(path, [caller(token)])];
    },
  ],
  [
    'with a link to another folder, as Kubernetes changes a Secret,',
    async () => {
      const mount = join(folder, uniqueKey());
      await mkdir(mount);
      const change: Change = async (token) => {
        const data = `data-${uniqueKey()}`;
        await mkdir(join(mount, data));
        await writeFile(join(mount, data, 'tokens.json'), JSON.stringify([caller(token)]));
        await symlink(data, join(mount, '..data_tmp'));
        await rename(join(mount, '..data_tmp'), join(mount, '..data'));
      };
      await change(OLD);
      await symlink('..data/tokens.json', join(mount, 'tokens.json'));
      return [join(mount, 'tokens.json'), change];
    },
  ],
];

/** Changes the tokens, and resolves when the replica has reloaded them. */
async function reload(replica: ReplicaProcess, change: () => Promise<void>): Promise<void> {
  const reloads = (): number => replica.log.filter(({ msg }) => msg === 'tokens reloaded').length;
  const before = reloads();
  await change();
  await until(() => reloads() > before);
}

test.each(WAYS)('%s a token is rotated without a rejected request', async (_way, make) => {
  const [path, change] = await make();
  const replica = await startReplica({ AUTH_TOKENS_FILE: path, MAX_REQUESTS: '1000000000' });
  const key = uniqueKey();
  const check = async (token: string): Promise<number> =>
    (await send(replica.url, 'POST', ratePath(key), bearer({ token }))).status;

  let token = OLD;
  let isOver = false;
  const statuses: Record<string, number[]> = { [OLD]: [], [NEW]: [] };
  /** The token of the last request of each client. */
  const lastOf: string[] = [];
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    while (!isOver) {
      const own = token;
      statuses[own]!.push(await check(own));
      lastOf[client] = own;
    }
  });
  const answers = (of: string): number => statuses[of]!.length;

  await until(() => answers(OLD) > 100);
  await reload(replica, () => change([OLD, NEW]));
  await until(() => answers(OLD) > 200);
  token = NEW;
  await until(() => lastOf.every((last) => last === NEW));
  await reload(replica, () => change(NEW));
  const removedAt = answers(NEW);
  await until(() => answers(NEW) > removedAt + 100);
  isOver = true;
  await Promise.all(clients);

  expect(Object.values(statuses).map((all) => [...new Set(all)])).toEqual([[200], [200]]);
  const rejections = (await scrape(replica.url, bearer({ token: NEW }))).valuesOf(
    'ratelimit_auth_rejections_total',
  );
  expect(new Set(Object.values(rejections))).toEqual(new Set([0]));
  expect(await check(OLD)).toBe(401);
});
