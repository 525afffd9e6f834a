import { constants } from 'node:os';

import { PROGRAMS, useCommandLine } from '../../../support/client/command-line.js';
import { debugState, untilWaiting } from '../../../support/debug-state.js';
import { send } from '../../../support/http-client.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { until } from '../../../support/until.js';
import { useApp, useApps } from '../../../support/use-apps.js';
import { useRedis } from '../../../support/use-redis.js';

const SETTINGS = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1', STORE_TIMEOUT_MILLIS: '30000' };

const redis = useRedis();
const app = useApp(() => ({ ...SETTINGS, REDIS_URL: redis.url }));
const startApp = useApps();

/** Prints the process group, the request id and its own id, has a child of its own, and both ignore SIGTERM. */
const IGNORES_SIGTERM = `trap '' TERM; sleep 1000 & echo "$$ $SLUICE_REQUEST_ID."; wait`;

const isGone = (group: number): boolean => {
  try {
    return !process.kill(-group, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true;
    throw error;
  }
};

describe.each(PROGRAMS)('sluice-client run $name', (program) => {
  const start = useCommandLine(program);
  const run = (key: string, ...args: string[]) =>
    start(['run', key, ...args], { env: { SLUICE_URL: app.url } });

  test.each(['HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2'])(
    'passes SIG%s on, and ends with the code of CMD',
    async (name) => {
      const key = uniqueKey();
      const script = `trap 'echo got it; exit 9' ${name}; echo ready; while :; do sleep 0.1; done`;

      const command = run(key, '--', 'sh', '-c', script);
      await command.written(/ready/);
      command.signal(`SIG${name}` as NodeJS.Signals);

      expect(await command.ended).toBe(9);
      expect(command.stdout).toBe('ready\ngot it\n');
      expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
    },
  );

  test('passes signals to the children of CMD, and ends with 128 and the signal that ended it', async () => {
    const key = uniqueKey();

    const command = run(key, '--', 'sh', '-c', 'sleep 1000 & echo $$.; wait; echo too far');
    const [, group] = await command.written(/(\d+)\./);
    command.signal('SIGTERM');

    expect(await command.ended).toBe(128 + constants.signals.SIGTERM);
    await until(() => isGone(Number(group)));
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGUSR2'] as const)(
    'gives its place back when %s ends its wait',
    async (signal) => {
      const key = uniqueKey();
      await send(app.url, 'POST', `/rate/${key}`);

      const command = run(key, '--', 'echo', 'CMD');
      await untilWaiting(app.url, key, 1);
      await command.written(/waits/);
      command.signal(signal);

      expect(await command.ended).toBe(128 + constants.signals[signal]);
      expect(command.stdout).toBe('');
      expect(await debugState(app.url, key)).toMatchObject({ NumWaiting: 0 });
    },
  );

  describe('after its hold is lost', () => {
    test('ends CMD and its children: by SIGTERM, and after the grace by SIGKILL', async () => {
      const key = uniqueKey();
      const options = ['--hold', '1s', '--grace', '200ms'];

      const command = run(key, ...options, '--', 'sh', '-c', IGNORES_SIGTERM);
      const [, group, id] = await command.written(/(\d+) (\S+)\./);
      await send(app.url, 'DELETE', `/rate/${key}/${id}`);

      expect(await command.ended).toBe(70);
      await until(() => isGone(Number(group)));
      expect(command.stderr).toBe(
        `sluice-client: ${key}: the hold is lost, CMD is ended: the permit no longer counts\n`,
      );
    });

    test('lets CMD end in its own way within the grace', async () => {
      const key = uniqueKey();
      const script = `trap 'echo cleaned; exit 3' TERM; echo $SLUICE_REQUEST_ID.; while :; do sleep 0.1; done`;

      const command = run(key, '--json', '--hold', '1s', '--', 'sh', '-c', script);
      const [, id] = await command.written(/([0-9a-f-]{36})\./);
      await send(app.url, 'DELETE', `/rate/${key}/${id}`);

      expect(await command.ended).toBe(70);
      expect(command.stdout).toMatch(/cleaned\n$/);
      expect(command.stderr).toContain(
        `{"event":"lost","key":"${key}","error":"the permit no longer counts"}\n`,
      );
    });

    test('ends the children of a CMD that has ended first', async () => {
      const key = uniqueKey();
      const child = `sh -c 'trap "" TERM; echo deaf.; exec sleep 1000'`;
      const script = `${child} & echo "$$ $SLUICE_REQUEST_ID."; wait`;

      const command = run(key, '--hold=1s', '--grace=200ms', '--', 'sh', '-c', script);
      const [, group, id] = await command.written(/(\d+) (\S{36})\./);
      await command.written(/deaf/);
      await send(app.url, 'DELETE', `/rate/${key}/${id}`);

      expect(await command.ended).toBe(70);
      await until(() => isGone(Number(group)));
    });

    test('ends CMD as well if Sluice can not be reached while the hold lasts', async () => {
      const service = await startApp({ ...SETTINGS, REDIS_URL: redis.url });

      const asked = ['--hold', '1s', '--url', service.url];
      const command = start([
        'run',
        uniqueKey(),
        ...asked,
        '--',
        'sh',
        '-c',
        'echo CMD; sleep 1000',
      ]);
      await command.written(/CMD/);
      await service.stop(0, AbortSignal.abort());

      expect(await command.ended).toBe(70);
    });
  });
});
