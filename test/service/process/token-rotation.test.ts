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

/** Changes the tokens, and resolves when the replica has reloaded them. */
async function reload(replica: ReplicaProcess, change: () => Promise<void>): Promise<void> {
  const reloads = (): number => replica.log.filter(({ msg }) => msg === 'tokens reloaded').length;
  const before = reloads();
  await change();
  await until(() => reloads() > before);
}

test('a token is rotated without a rejected request', async () => {
  const path = await tokenFile(folder, caller(OLD));
  // test/unit/config/watched-files.test.ts changes files in other ways.
  const change = (token: string | string[]) => writeTokens(path, [caller(token)]);
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
