import { callText } from '../../support/bulk-client.js';
import { smallLimiter, useHttpServices } from '../../support/http-service.js';
import { openConnection } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { withholdDecisions } from '../../support/withheld-decisions.js';

const startService = useHttpServices();

test('the approvals of a bulk request are given back if its client disconnects before the answer', async () => {
  const limiter = smallLimiter();
  const { tell, decided } = withholdDecisions(limiter);
  const service = await startService({ limiter });
  const keys = Array.from({ length: 1000 }, () => uniqueKey());
  const connection = await openConnection(service.url);
  connection.write(callText('POST', [...keys.map((key) => ({ key })), 5].slice(-1000)));
  await until(() => decided() === 999);
  const last = keys.at(-1)!;
  expect(await limiter.inspect(last)).toMatchObject({ limits: [{ used: 1 }] });
  connection.disconnect();
  await connection.closed;
  tell();
  await until(async () => (await limiter.inspect(last))?.limits[0].used === 0);

  for (const key of keys.slice(1))
    expect(await limiter.inspect(key)).toMatchObject({ limits: [{ used: 0 }] });
});

test('releases are carried out even if their client disconnects', async () => {
  const limiter = smallLimiter();
  const release = limiter.release.bind(limiter);
  let asked = 0;
  let go!: () => void;
  const isTimeToGo = new Promise<void>((resolve) => (go = resolve));
  limiter.release = async (...args) => {
    asked += 1;
    await isTimeToGo;
    return release(...args);
  };
  const service = await startService({ limiter });
  const held: { key: string; request_id: string }[] = [];
  for (let i = 0; i < 1000; i += 1) {
    const key = uniqueKey();
    const decision = await limiter.check({ key, canWait: false });
    held.push({ key, request_id: (decision as { requestId: string }).requestId });
  }
  const connection = await openConnection(service.url);
  connection.write(callText('DELETE', held));
  await until(() => asked > 0);
  connection.disconnect();
  go();
  await until(() => asked === 1000);
  const last = held.at(-1)!;
  await until(async () => (await limiter.inspect(last.key))?.limits[0].used === 0);

  for (const { key } of held)
    expect(await limiter.inspect(key)).toMatchObject({ limits: [{ used: 0 }] });
});
