import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';

import { describeCommandLine, useCommandLine } from '../../../support/client/command-line.js';
import { StoredHolds } from '../../../support/client/stored-holds.js';
import { debugState, untilWaiting } from '../../../support/debug-state.js';
import { freePort } from '../../../support/free-port.js';
import { send } from '../../../support/http-client.js';
import { useTemporaryFolder } from '../../../support/temporary-folder.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { until } from '../../../support/until.js';
import { useApp, useApps } from '../../../support/use-apps.js';
import { useRedis } from '../../../support/use-redis.js';

const SETTINGS = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1', STORE_TIMEOUT_MILLIS: '30000' };

const CTRL_Z = '\u001a';

const folder = useTemporaryFolder();
const redis = useRedis();
const holds = new StoredHolds(redis);
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

const isStopped = (pid: number): boolean =>
  execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).startsWith('T');

const eventsIn = (text: string): unknown[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describeCommandLine('sluice-client run', () => {
  const start = useCommandLine();
  const run = (key: string, ...args: string[]) =>
    start(['run', key, ...args], { env: { SLUICE_URL: app.url } });

  test('runs CMD with its key and request id, ends with its code, and has released by then', async () => {
    const key = uniqueKey();

    const command = run(key, '--', 'sh', '-c', 'echo "$SLUICE_KEY $SLUICE_REQUEST_ID"; exit 7');

    expect(await command.ended).toBe(7);
    expect(command.stdout).toMatch(new RegExp(`^${key} [0-9a-f-]{36}\n$`));
    expect(command.stderr).toBe(`sluice-client: ${key}: at most 1 at a time\n`);
    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
  });

  test('takes what the options say, after KEY and before it', async () => {
    const key = uniqueKey();
    const limits = ['--max=5', '--window', '2h', '--max-queue', '3', '--hits', '2'];

    const command = start(
      ['run', ...limits, key, '--holder', 'a test', '--hold=10m', '--', 'cat'],
      { env: { SLUICE_URL: app.url } },
    );
    command.type('CMD\n');
    await command.written(/CMD/);

    expect(await debugState(app.url, key)).toMatchObject({
      Config: { MaxRequestsPerWindow: 5, MaxRequestsInQueue: 3 },
      Holders: [{ Holder: 'a test', Hits: 2 }],
    });
    command.endInput();
    expect(await command.ended).toBe(0);
  });

  test('waits for its turn, and says where it is', async () => {
    const key = uniqueKey();
    const first = run(key, '--', 'cat');
    first.type('at work\n');
    await first.written(/at work/);

    const second = run(key, '--', 'echo', 'done');
    await second.reported(/\n/);
    expect(second.stderr).toBe(`sluice-client: ${key}: waits, position 1, at least 60 min\n`);
    const third = run(key, '--json', '--', 'echo', 'done');
    await third.reported(/waiting/);
    const quiet = run(key, '--quiet', '--', 'echo', 'done');
    await untilWaiting(app.url, key, 3);
    first.endInput();

    const others = [second, third, quiet];
    expect(await Promise.all(others.map(({ ended }) => ended))).toEqual([0, 0, 0]);
    expect(others.map(({ stdout }) => stdout)).toEqual(Array(3).fill('done\n'));
    expect(second.stderr.split('\n')).toEqual([
      expect.stringContaining('waits'),
      `sluice-client: ${key}: at most 1 at a time`,
      '',
    ]);
    expect(quiet.stderr).toBe('');
    expect(eventsIn(third.stderr)).toEqual([
      { event: 'waiting', key, position: 2, waitMillis: expect.any(Number) as number },
      { event: 'approved', key, requestId: expect.any(String) as string },
    ]);
  });

  test('lets one CMD at a time run, unless a rule or --max says otherwise', async () => {
    const [plain, ruled] = [uniqueKey(), uniqueKey()];
    const rules = [{ key_pattern: ruled, max_requests_per_window: 3 }];
    const { url } = await startApp({ WINDOW_MILLIS: '3600000' }, { rules });
    const firstLine = async (...args: string[]) => {
      const command = start(['run', ...args, '--', 'true'], { env: { SLUICE_URL: url } });
      expect(await command.ended).toBe(0);
      return command.stderr.split(': ').at(-1);
    };

    expect(await firstLine(plain)).toBe('at most 1 at a time\n');
    expect(await firstLine(plain, '--max', '2')).toBe('at most 2 at a time\n');
    expect(await firstLine(ruled)).toBe('at most 3 at a time\n');
    expect(await firstLine(ruled, '--max', '5', '--hits', '2')).toBe(
      'at most 5 at a time, takes 2\n',
    );
  });

  test('renews a hold that is shorter than CMD', async () => {
    const key = uniqueKey();

    const command = run(key, '--hold', '4s', '--', 'sh', '-c', 'echo $SLUICE_REQUEST_ID; cat');
    const [id] = await command.written(/[0-9a-f-]{36}/);
    await holds.untilProlonged(key, id, 1000);
    command.endInput();

    expect(await command.ended).toBe(0);
  });

  describe('that is denied', () => {
    test.each([
      ['if it may not wait', ['--no-wait']],
      ['if its turn would come too late', ['--max-wait', '1s']],
      ['if the queue is full', ['--max-queue', '0']],
    ])('%s ends with 75, without CMD', async (_, options) => {
      const key = uniqueKey();
      await send(app.url, 'POST', `/rate/${key}`);

      const command = run(key, ...options, '--', 'echo', 'CMD');
      const silent = [['--quiet'], ['--quiet', '--json']].map((more) =>
        run(key, ...options, ...more, '--', 'echo', 'CMD'),
      );

      expect(await command.ended).toBe(75);
      expect(command.stdout).toBe('');
      for (const quiet of silent) {
        expect([await quiet.ended, quiet.stdout, quiet.stderr]).toEqual([75, '', '']);
      }
      expect(command.stderr).toBe(`sluice-client: ${key}: denied, try again in 60 min\n`);
    });

    test('names the limit in JSON as well', async () => {
      const key = uniqueKey();
      const limits = [{ name: 'hour', max_requests_per_window: 1, window_millis: 3_600_000 }];
      const rules = [{ key_pattern: key, max_requests_per_window: 5, limits }];
      const { url } = await startApp({ ...SETTINGS, REDIS_URL: redis.url }, { rules });
      await send(url, 'POST', `/rate/${key}`);
      const denied = (...options: string[]) =>
        start(['run', key, '--no-wait', '--url', url, ...options, '--', 'true']);

      const [text, json] = [denied(), denied('--json')];

      expect(await Promise.all([text.ended, json.ended])).toEqual([75, 75]);
      expect(text.stderr).toContain('denied by the limit hour, try again in 60 min');
      const event = { event: 'denied', key, limit: 'hour' };
      expect(eventsIn(json.stderr)).toEqual([
        { ...event, retryAfterSeconds: expect.any(Number) as number },
      ]);
    });
  });

  test('tries each of several addresses, and ends with 69 if none answers', async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    const several = (...urls: string[]) =>
      start(['run', uniqueKey(), ...urls.map((url) => `--url=${url}`), '--', 'true']);

    expect(await several(nowhere, app.url).ended).toBe(0);
    const env = { SLUICE_URL: `${nowhere}, ${app.url}` };
    expect(await start(['run', uniqueKey(), '--', 'true'], { env }).ended).toBe(0);
    const none = several(nowhere, nowhere);
    expect(await none.ended).toBe(69);
    expect(none.stderr).toContain(`: Sluice is unreachable (${nowhere}, ${nowhere})\n`);
  });

  test.each([
    ['is not found', 'no-such-command', 127, 'not found'],
    ['is no program', '/', 126, "can't be executed: EACCES"],
  ])('gives the approval back if CMD %s', async (_, name, code, problem) => {
    const key = uniqueKey();

    const command = run(key, '--', name);

    expect(await command.ended).toBe(code);
    expect(command.stderr.split('\n').slice(1)).toEqual([
      `sluice-client: ${key}: ${name}: ${problem}`,
      '',
    ]);
    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
  });

  test('ends with the code of CMD if it can not release, and says so', async () => {
    const service = await startApp({ ...SETTINGS, REDIS_URL: redis.url });
    const key = uniqueKey();

    const command = start(['run', key, '--url', service.url, '--', 'sh', '-c', 'cat; exit 3']);
    command.type('CMD\n');
    await command.written(/CMD/);
    await service.stop(0, AbortSignal.abort());
    command.endInput();

    expect(await command.ended).toBe(3);
    expect(command.stderr).toContain(`${key}: not released, the approval lapses with its hold: `);
  });

  test('lets CMD go on if nobody reads the messages any more', async () => {
    const key = uniqueKey();
    await send(app.url, 'POST', `/rate/${key}?maxRequests=1`);

    const command = run(key, '--json', '--', 'sh', '-c', 'exit 4');
    await command.reported(/waiting/);
    command.closeErrors();
    await send(app.url, 'POST', `/rate/${key}?maxRequests=2`);

    expect(await command.ended).toBe(4);
  });

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
      await command.reported(/waits/);
      command.signal(signal);

      expect(await command.ended).toBe(128 + constants.signals[signal]);
      expect(command.stdout).toBe('');
      expect(await debugState(app.url, key)).toMatchObject({ NumWaiting: 0 });
    },
  );

  describe('after its hold is lost', () => {
    /** So long that it does not lapse before a renewal, which comes after a third of it and notices the loss. */
    const HOLD = '4s';

    test('ends CMD and its children: by SIGTERM, and after the grace by SIGKILL', async () => {
      const key = uniqueKey();
      const options = ['--hold', HOLD, '--grace', '200ms'];

      const command = run(key, ...options, '--', 'sh', '-c', IGNORES_SIGTERM);
      const [, group, id] = await command.written(/(\d+) (\S+)\./);
      await send(app.url, 'DELETE', `/rate/${key}/${id}`);

      expect(await command.ended).toBe(70);
      await until(() => isGone(Number(group)));
      expect(command.stderr).toContain(
        `sluice-client: ${key}: the hold is lost, CMD is ended: the permit no longer counts\n`,
      );
    });

    test('lets CMD end in its own way within the grace', async () => {
      const key = uniqueKey();
      const script = `trap 'echo cleaned; exit 3' TERM; echo $SLUICE_REQUEST_ID.; while :; do sleep 0.1; done`;

      const command = run(key, '--json', '--hold', HOLD, '--', 'sh', '-c', script);
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

      const command = run(key, `--hold=${HOLD}`, '--grace=200ms', '--', 'sh', '-c', script);
      const [, group, id] = await command.written(/(\d+) (\S{36})\./);
      await command.written(/deaf/);
      await send(app.url, 'DELETE', `/rate/${key}/${id}`);

      expect(await command.ended).toBe(70);
      await until(() => isGone(Number(group)));
    });
  });

  describe('as a shell starts CMD', () => {
    const runIn = (script: string, ...args: string[]) =>
      start(['run', uniqueKey(), ...args], { env: { SLUICE_URL: app.url }, script });
    const printedIn = async (script: string, ...args: string[]) => {
      const command = runIn(script, '--quiet', ...args);
      expect([await command.ended, command.stderr]).toEqual([0, '']);
      return command.stdout;
    };

    test.each([
      ['3', 'exec "$@" 3< <(echo inherited)', ['sh', '-c', 'cat <&3']],
      ['40', 'exec "$@" 40< <(echo inherited)', ['cat', '/dev/fd/40']],
      ['of <(...)', '"$@" <(echo inherited)', ['cat']],
    ])('the descriptor %s stays open', async (_, script, words) => {
      expect(await printedIn(script, '--', ...words)).toBe('inherited\n');
    });

    test('an argument that is not UTF-8 stays as it is', async () => {
      const words = ['sh', '-c', 'printf %s "$1" | od -An -tx1', '-'];

      const printed = await printedIn(`"$@" $'a\\377b'`, '--', ...words);

      expect(printed.trim()).toBe('61 ff 62');
      const wrong = runIn(`"$@" $'--holder=\\377' -- true`);
      expect(await wrong.ended).toBe(64);
      expect(wrong.stderr).toContain(String.raw`"\xff" is not valid UTF-8`);
    });

    test('a script without #! is run by sh', async () => {
      const path = join(folder, 'plain');
      await writeFile(path, 'echo "plain $1 $SLUICE_KEY." | cut -c1-9\n', { mode: 0o755 });

      expect(await printedIn('exec "$@"', '--', path, 'one')).toBe('plain one\n');
      expect(await printedIn(`PATH=${folder}:$PATH exec "$@"`, '--', 'plain', 'two')).toBe(
        'plain two\n',
      );
    });

    test('a file on the PATH that may not be executed is no missing one', async () => {
      await writeFile(join(folder, 'data'), '');

      const command = runIn(`PATH=${folder}:$PATH exec "$@"`, '--', 'data');

      expect(await command.ended).toBe(126);
      expect(command.stderr).toContain("data: can't be executed: EACCES\n");
    });

    test('nohup keeps CMD and run from being ended', async () => {
      const script = 'kill -HUP $$; echo "$PPID survived."; cat';

      const command = runIn('exec nohup "$@"', '--', 'sh', '-c', script);
      const [, pid] = await command.written(/(\d+) survived/);
      process.kill(Number(pid), 'SIGHUP');
      command.type('still there\n');
      await command.written(/still there/);
      command.endInput();

      expect(await command.ended).toBe(0);
    });

    test('a job without a terminal stops and goes on as a whole', async () => {
      const command = runIn('exec "$@"', '--', 'sh', '-c', 'sleep 1000 & echo "$$ $!."; wait');
      const [, shell, child] = await command.written(/(\d+) (\d+)\./);
      const all = [command.pid, Number(shell), Number(child)];

      command.signal('SIGTSTP');
      await until(() => all.every(isStopped));
      command.signal('SIGCONT');
      await until(() => !all.some(isStopped));
      command.signal('SIGTSTP');
      await until(() => all.every(isStopped));
      command.signal('SIGCONT');
      command.signal('SIGTERM');

      expect(await command.ended).toBe(143);
      await until(() => isGone(Number(shell)));
    });

    test('a job with redirected streams reads /dev/tty, and Ctrl-Z stops it', async () => {
      const script = `set -m; "$@" </dev/null >/dev/null 2>&1; echo "code $?."; fg; echo "code $?."`;
      const words = ['sh', '-c', 'echo begun >/dev/tty; read code </dev/tty; exit $code'];

      const command = start(['run', uniqueKey(), '--', ...words], {
        env: { SLUICE_URL: app.url },
        onTerminal: true,
        script,
      });
      await command.written(/begun/);
      command.type(CTRL_Z);
      await command.written(/code 148\./);
      command.type('5\n');
      await command.written(/code 5\./);

      expect(await command.ended).toBe(0);
    });
  });

  describe('with --timeout', () => {
    test('ends CMD by SIGTERM, gives the approval back, and ends with 124', async () => {
      const key = uniqueKey();
      const script = `trap 'echo cleaned; exit 3' TERM; while :; do sleep 0.1; done`;

      const command = run(key, '--timeout', '4s', '--', 'sh', '-c', script);

      expect(await command.ended).toBe(124);
      expect(command.stdout).toBe('cleaned\n');
      expect(command.stderr).toContain(
        `sluice-client: ${key}: CMD has run for 4s, and is ended by --timeout\n`,
      );
      expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
    });

    test('ends CMD and its children by SIGKILL after the grace', async () => {
      const key = uniqueKey();
      const options = ['--timeout=4s', '--grace=200ms', '--json', '--quiet'];

      const command = run(key, ...options, '--', 'sh', '-c', IGNORES_SIGTERM);
      const [, group] = await command.written(/(\d+) (\S+)\./);

      expect(await command.ended).toBe(124);
      await until(() => isGone(Number(group)));
      expect(eventsIn(command.stderr)).toEqual([{ event: 'timeout', key }]);
    });

    test('changes nothing if CMD ends before', async () => {
      expect(await run(uniqueKey(), '--timeout', '1h', '--', 'sh', '-c', 'exit 3').ended).toBe(3);
    });
  });
});
