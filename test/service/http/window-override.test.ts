import { checkMany } from '../../support/bulk-client.js';
import { bodyOf, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';

const start = useApps();

describe('windowMillis', () => {
  // A key without a check for four windows is removed, and with it what requests have set.
  const app = useApp(() => ({ WINDOW_MILLIS: '1000', WINDOW_MILLIS_CEILING: '3600000' }));
  const key = useHttpKey(() => app);

  test('can be given by an element of a bulk request', async () => {
    await checkMany(app.url, [{ key: key.name, windowMillis: 60_000 }]);
    await until(async () => {
      await key.check();
      return (await key.state()).Config?.WindowMillis === 60_000;
    });
  });

  test.each([
    ['3600001', 403, 'be at most 3600000 for this key'],
    ['0', 400, 'be a whole number from 1 to 31622400000'],
  ])('of %s is a %d', async (millis, status, must) => {
    expect(bodyOf(await key.check(`?windowMillis=${millis}`))).toEqual([
      status,
      { error: `windowMillis must ${must}`, key: key.name },
    ]);
  });
});

test('windowMillis can be forbidden', async () => {
  const app = await start({ REQUESTS_CAN_SET_WINDOW: 'false' });
  expect(bodyOf(await send(app.url, 'POST', '/rate/a?windowMillis=60000'))).toEqual([
    403,
    { error: 'overriding windowMillis is disabled', key: 'a' },
  ]);
});
