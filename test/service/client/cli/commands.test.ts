import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describeCommandLine, useCommandLine } from '../../../support/client/command-line.js';
import { useRecordingServers } from '../../../support/client/recording-server.js';
import { debugState, untilWaiting } from '../../../support/debug-state.js';
import { extent } from '../../../support/extent.js';
import { freePort } from '../../../support/free-port.js';
import { send } from '../../../support/http-client.js';
import { useTemporaryFolder } from '../../../support/temporary-folder.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { useApp, useApps } from '../../../support/use-apps.js';

const TOKEN = 'a-token-that-is-long-enough-for-sluice';
const SETTINGS = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
const ID = /^([0-9a-f-]{36})\n$/;

const folder = useTemporaryFolder();
const app = useApp(() => SETTINGS, { rules: [{ key_pattern: 'fair', queue: { fair: true } }] });
const startApp = useApps();

/** The data of the dashboard, with one key, of which `changes` replace a part. */
const dataWith = (changes: object) => ({
  replicas: [{}],
  isComplete: true,
  keys: [
    {
      key: 'k',
      states: ['waiting'],
      limits: [{ used: 1, maximum: 2 }],
      waiting: 1,
      pausedMillis: 0,
    },
  ].map((row) => ({ ...row, ...changes })),
});

/** Answers with 200, and what is wrong with each. */
const MALFORMED: readonly (readonly [command: string, body: object | null, problem: string])[] = [
  ['check', [], 'the body must be an object'],
  ['check', { request_id: 5 }, 'request_id must be a text'],
  ['check', null, 'the body must be an object'],
  ['peek', { waitMillis: '1' }, 'waitMillis must be a number'],
  ['peek', { waitMillis: 1e300 }, 'waitMillis must be a number'],
  ['top', [], 'the body must be an object'],
  ['top', { ...dataWith({}), replicas: 1 }, 'replicas must be a list'],
  ['top', { ...dataWith({}), isComplete: 1 }, 'isComplete must be true or false'],
  ['top', { ...dataWith({}), keys: {} }, 'keys must be a list'],
  ['top', { ...dataWith({}), keys: [null] }, 'keys[0] must be an object'],
  ['top', dataWith({ key: 7 }), 'keys[0].key must be a text'],
  ['top', dataWith({ states: [7] }), 'keys[0].states[0] must be a text'],
  ['top', dataWith({ limits: [{ used: '9' }] }), 'keys[0].limits[0].used must be a number'],
  ['top', dataWith({ waiting: undefined }), 'keys[0].waiting must be a number'],
  ['top', dataWith({ recentDenials: 5 }), 'keys[0].recentDenials must be an object'],
];

describeCommandLine('sluice-client', () => {
  const start = useCommandLine();

  const turn = 'a turn would come in at least';

  /** Runs a command to its end. */
  const ended = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const command = start(args, { env: { SLUICE_URL: app.url, ...env } });
    const code = await command.ended;
    const { stdout, stderr } = command;
    return { code, stdout, stderr };
  };
  const printed = async (...args: string[]) => {
    const { code, stdout } = await ended([...args, '--json']);
    return [code, JSON.parse(stdout) as unknown];
  };

  describe('check', () => {
    test('prints the id of an approval, which release gives back', async () => {
      const key = uniqueKey();

      const checked = await ended(['check', key, '--hold', '10m']);
      const [, id = ''] = ID.exec(checked.stdout) ?? [];

      expect(checked).toMatchObject({ code: 0, stderr: '' });
      expect(await debugState(app.url, key)).toMatchObject({ NumHeld: 1 });
      const released = { code: 0, stdout: `${key}: released\n`, stderr: '' };
      expect(await ended(['release', key, id])).toEqual(released);
      expect(await ended(['release', key, id])).toEqual({
        code: 1,
        stdout: '',
        stderr: `sluice-client: ${key}: no such approval\n`,
      });
    });

    test('gives its approval back if its id can not be written', async () => {
      const key = uniqueKey();
      const unwritable = await open(import.meta.filename, 'r');

      const command = start(['check', key, '--hold', '10m'], {
        env: { SLUICE_URL: app.url },
        output: unwritable.fd,
      });

      expect(await command.ended).toBe(74);
      expect(command.stderr).toContain(`sluice-client: ${key}: the result can't be written: `);
      expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
      await unwritable.close();
    });

    test('is denied at once', async () => {
      const key = uniqueKey();
      await send(app.url, 'POST', `/rate/${key}`);

      expect(await ended(['check', key])).toEqual({
        code: 75,
        stdout: '',
        stderr: `sluice-client: ${key}: denied, try again in 60 min\n`,
      });
      const silent = { code: 75, stdout: '', stderr: '' };
      expect(await ended(['check', key, '--quiet'])).toEqual(silent);
    });

    test.each([['--wait'], ['--max-wait=2h']])('waits with %s', async (option) => {
      const key = uniqueKey();
      const first = await send(app.url, 'POST', `/rate/${key}`);
      const { request_id: id } = first.json() as { request_id: string };

      const command = start(['check', key, option], { env: { SLUICE_URL: app.url } });
      await untilWaiting(app.url, key, 1);
      await send(app.url, 'DELETE', `/rate/${key}/${id}`);

      expect(await command.ended).toBe(0);
      expect(command.stdout).toMatch(ID);
      expect(command.stderr).toContain('waits, position 1');
    });

    test('gives its place back when a signal ends its wait', async () => {
      const key = uniqueKey();
      await send(app.url, 'POST', `/rate/${key}`);

      const command = start(['check', key, '--wait'], { env: { SLUICE_URL: app.url } });
      await command.reported(/waits/);
      command.signal('SIGTERM');

      expect(await command.ended).toBe(143);
      expect(await debugState(app.url, key)).toMatchObject({ NumWaiting: 0 });
    });
  });

  test('peek says what a check would get, and takes nothing', async () => {
    const key = uniqueKey();
    const peek = (...args: string[]) => ended(['peek', key, ...args]);

    expect(await peek()).toEqual({
      code: 0,
      stdout: `${key}: would be approved\n  default: 1 of 1 remain, reset in 60 min\n`,
      stderr: '',
    });
    await send(app.url, 'POST', `/rate/${key}`);
    expect(await peek()).toEqual({
      code: 75,
      stdout:
        `${key}: would be denied, ${turn} 60 min\n` + '  default: 0 of 1 remain, reset in 60 min\n',
      stderr: '',
    });
  });

  test('pause keeps a key from being approved until it ends', async () => {
    const key = uniqueKey();

    expect(await ended(['pause', key, '10m'])).toMatchObject({
      code: 0,
      stdout: `${key}: paused for 10m\n`,
    });
    expect((await ended(['check', key])).code).toBe(75);
    expect(await ended(['pause', '--end', key])).toMatchObject({
      code: 0,
      stdout: `${key}: pause ended\n`,
    });
    expect((await ended(['check', key])).code).toBe(0);
  });

  test('pause of a group keeps only its checks from being approved', async () => {
    const group = uniqueKey();

    expect(await ended(['pause', 'fair', '10m', '--group', group])).toMatchObject({
      code: 0,
      stdout: `fair, group ${group}: paused for 10m\n`,
    });
    expect((await ended(['peek', 'fair', '--group', group])).code).toBe(75);
    expect((await ended(['peek', 'fair'])).code).toBe(0);
    const change = { key: 'fair', group, pauseMillis: 0 };
    expect(await printed('pause', 'fair', '--end', '--group', group)).toEqual([0, change]);
    expect((await ended(['peek', 'fair', '--group', group])).code).toBe(0);
  });

  describe('holders', () => {
    test('shows who holds approvals, which end-hold ends', async () => {
      const key = uniqueKey();
      await ended(['check', key, '--hold', '5h', '--holder', 'a\u202etest', '--max', '2']);
      await send(app.url, 'POST', `/rate/${key}?holdMillis=10800000`);

      const anyNumber = expect.any(Number) as number;
      const [code, result] = await printed('holders', key);
      const { holders } = result as { holders: { handle: string }[] };
      const [unnamed, named] = holders.map(({ handle }) => handle);
      const { stdout } = await ended(['holders', key]);

      expect([code, result]).toEqual([
        0,
        {
          key,
          holders: [
            { handle: unnamed, hits: 1, lapseMillis: anyNumber },
            {
              ...{ handle: named, holder: 'a\u202etest', hits: 1 },
              ...{ heldMillis: anyNumber, lapseMillis: anyNumber },
            },
          ],
        },
      ]);
      expect(stdout.replace(/ +\d+ s /, ' 0 s ').split('\n')).toEqual([
        expect.stringMatching(/^HANDLE {12}HOLDER {7}HITS +HELD {2}LAPSES IN$/),
        expect.stringMatching(`^${unnamed}  - {15}1 +- {8}3 h$`),
        expect.stringMatching(`^${named}  a\\\\u202etest {5}1 0 s {8}5 h$`),
        '',
      ]);
      expect(await ended(['end-hold', key, named!])).toEqual({
        ...{ code: 0, stdout: `${key}: hold ended\n`, stderr: '' },
      });
      expect(await ended(['end-hold', key, named!])).toEqual({
        ...{ code: 1, stdout: '', stderr: `sluice-client: ${key}: no such hold\n` },
      });
      const end = { key, handle: unnamed };
      expect(await printed('end-hold', key, unnamed!)).toEqual([0, { ended: true, ...end }]);
      expect(await printed('end-hold', key, unnamed!)).toEqual([1, { ended: false, ...end }]);
      expect((await ended(['holders', key])).stdout).toBe(`${key}: nobody holds an approval\n`);
    });

    test('says why it can not read them', async () => {
      const { url } = await startApp({ ...SETTINGS, DEBUG_ENDPOINTS: 'false' });
      const tokens = [{ token: TOKEN, name: 'ci', scopes: ['check'] }];
      const guarded = await startApp(SETTINGS, { tokens });

      const hidden = await ended(['holders', 'k', '--url', url]);
      const env = { SLUICE_TOKEN: TOKEN, SLUICE_URL: guarded.url };
      const refused = await ended(['holders', 'k'], env);
      const end = await ended(['end-hold', 'k', 'h', '--json'], env);

      expect([hidden.code, refused.code, end.code]).toEqual([64, 64, 64]);
      expect(hidden.stderr).toContain('DEBUG_ENDPOINTS is false');
      expect(refused.stderr).toContain('the scope debug (status 403)');
      expect(JSON.parse(end.stderr)).toMatchObject({ event: 'error', key: 'k', status: 403 });
    });
  });

  test('writes results in JSON', async () => {
    const key = uniqueKey();
    const anyNumber = expect.any(Number) as number;
    const quota = (remaining: number) => [
      { name: 'default', limit: 1, remaining, resetSeconds: anyNumber, windowSeconds: 3600 },
    ];

    const [code, approval] = await printed('check', key);
    const { requestId } = approval as { requestId: string };

    expect([code, approval]).toEqual([0, { approved: true, key, requestId, quota: quota(0) }]);
    const denial = { approved: false, key, retryAfterSeconds: anyNumber, quota: quota(0) };
    expect(await printed('check', key)).toEqual([75, denial]);
    const peeked = { allowed: false, key, waitMillis: anyNumber, quota: quota(0) };
    expect(await printed('peek', key)).toEqual([75, peeked]);
    expect(await printed('release', key, requestId)).toEqual([
      0,
      { released: true, key, requestId },
    ]);
    expect(await printed('release', key, requestId)).toEqual([
      1,
      { released: false, key, requestId },
    ]);
    expect(await printed('pause', key, '10m')).toEqual([0, { key, pauseMillis: 600_000 }]);
    expect(await printed('pause', key, '--end')).toEqual([0, { key, pauseMillis: 0 }]);
  });

  test('reports errors of Sluice as events in JSON', async () => {
    const key = uniqueKey();

    const { code, stderr } = await ended(['check', key, '--max', '0', '--json']);

    expect(code).toBe(64);
    expect(JSON.parse(stderr)).toEqual({
      event: 'error',
      key,
      error: expect.stringContaining('maxRequests must be') as string,
      code: 'INVALID_PARAMETER',
      status: 400,
    });
  });

  test('uses no proxy of the environment', async () => {
    const proxy = `http://127.0.0.1:${await freePort()}`;
    const env = { HTTP_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy };

    expect((await ended(['peek', uniqueKey()], env)).code).toBe(0);
    expect((await ended(['top'], env)).code).toBe(0);
  });

  test('sends the token of the option, or else of the variables', async () => {
    const tokens = [{ token: TOKEN, name: 'ci', scopes: ['check', 'debug'] }];
    const { url } = await startApp(SETTINGS, { tokens });
    const [right, wrong] = [join(folder, 'right'), join(folder, 'wrong')];
    await writeFile(right, `${TOKEN}\n`);
    await writeFile(wrong, 'not the token');
    const check = (args: readonly string[], env: Readonly<Record<string, string>>) =>
      ended(['check', uniqueKey(), ...args], { SLUICE_URL: url, ...env }).then(({ code }) => code);

    expect(await check([], {})).toBe(64);
    expect(await check([], { SLUICE_TOKEN: TOKEN })).toBe(0);
    expect(await check([], { SLUICE_TOKEN: 'not it', SLUICE_TOKEN_FILE: right })).toBe(0);
    expect(await check(['--token-file', right], { SLUICE_TOKEN_FILE: wrong })).toBe(0);
    const top = await ended(['top'], { SLUICE_URL: url, SLUICE_TOKEN: TOKEN });
    expect(top).toMatchObject({ code: 0, stderr: '' });
  });

  describe('top', () => {
    test('prints the keys that need a person, in the order of their need', async () => {
      const { url } = await startApp({ ...SETTINGS, MAX_REQUESTS_IN_QUEUE: '2' });
      const path = (key: string) => `/rate/${encodeURIComponent(key)}`;
      for (const key of ['waited-for', 'full', 'denied\u001b[2J', 'paused', 'idle']) {
        await send(url, 'POST', path(key));
      }
      await send(url, 'POST', path('denied\u001b[2J'));
      await send(url, 'PUT', `${path('paused')}?pauseMillis=600000`);
      const waits = ['waited-for', 'full', 'full'].map((key) =>
        start(['check', key, '--wait'], { env: { SLUICE_URL: url } }),
      );
      await untilWaiting(url, 'waited-for', 1);
      await untilWaiting(url, 'full', 2);

      const { code, stdout } = await ended(['top'], { SLUICE_URL: url });
      const json = await ended(['top', '--once', '--json'], { SLUICE_URL: url });

      expect(code).toBe(0);
      expect(stdout.replace(/(?<= denied .*)\d\.\d$/m, '1.0')).toBe(
        [
          'KEY              STATE          USED/MAX  WAITING  DENIED/S',
          'paused           paused 10 min       1/1        0       0.0',
          'denied\\u001b[2J  denied              1/1        0       1.0',
          'full             queue full          1/1        2       0.0',
          'waited-for       waiting             1/1        1       0.0',
          '',
        ].join('\n'),
      );
      const states = ['paused', 'denied', 'queue full', 'waiting'].map((state) => ({ state }));
      expect(JSON.parse(json.stdout)).toMatchObject({
        replicas: 1,
        isComplete: true,
        keys: states,
      });
      for (const wait of waits) wait.signal('SIGTERM');
      await Promise.all(waits.map((wait) => wait.ended));
    });

    test('says so if no key needs anybody', async () => {
      const { url } = await startApp(SETTINGS);

      const stdout = 'no key is paused, denied or waited for\n';
      expect(await ended(['top'], { SLUICE_URL: url })).toEqual({ code: 0, stdout, stderr: '' });
    });

    test('says why it can not read the keys', async () => {
      const { url } = await startApp({ ...SETTINGS, DEBUG_ENDPOINTS: 'false' });
      const nowhere = `http://127.0.0.1:${await freePort()}`;

      const [hidden, away] = [
        await ended(['top', '--url', url]),
        await ended(['top', '--url', nowhere]),
      ];

      expect(hidden).toMatchObject({ code: 64, stdout: '' });
      expect(hidden.stderr).toContain('DEBUG_ENDPOINTS is false');
      expect(away).toEqual({
        code: 69,
        stdout: '',
        stderr: `sluice-client: Sluice is unreachable (${nowhere})\n`,
      });
    });
  });

  describe('what a server sends', () => {
    const serve = useRecordingServers();
    const CODES = 'a\u001b[2J\u0007\u009b1m\u202e\u2028b';
    /** What no terminal acts on. */
    const SHOWN = 'a\\u001b[2J\\u0007\\u009b1m\\u202e\\u2028b';
    const denial = { error: CODES, limit: CODES, waitMillis: 1000 };
    const asked = async (body: object | null, status: number, ...args: string[]) => {
      const { url } = await serve((call) => {
        call.succeed(body, status);
      });
      return ended(args, { SLUICE_URL: url });
    };

    test.each([
      ['peek', 429, denial, 75, `k: would be denied by the limit ${SHOWN}, ${turn} 1 s`],
      ['check', 429, denial, 75, `k: denied by the limit ${SHOWN}, try again in 1 s`],
      ['check', 200, { request_id: CODES }, 0, SHOWN],
      ['check', 400, denial, 64, `k: ${SHOWN} (status 400)`],
      ['release', 400, denial, 64, `k: ${SHOWN} (status 400)`],
      ['top', 200, dataWith({ key: CODES }), 0, `${SHOWN}  waiting `],
    ])(
      '%s shows without its codes, after a status %i',
      async (command, status, body, code, shown) => {
        const operands = { top: [], release: ['k', 'id'] }[command] ?? ['k'];
        const text = await asked(body, status, command, ...operands);
        const json = await asked(body, status, command, ...operands, '--json');

        expect([text.code, json.code]).toEqual([code, code]);
        expect(text.stdout + text.stderr).toContain(shown);
        for (const printedText of [text.stdout, text.stderr, json.stdout, json.stderr]) {
          expect(printedText).not.toMatch(/(?!\n)[\p{Cc}\p{Zl}\p{Bidi_Control}]/u);
        }
        const said = JSON.parse(json.stdout + json.stderr) as unknown;
        expect(JSON.stringify(said)).toContain(JSON.stringify(CODES).slice(1, -1));
      },
    );

    const some = extent(
      MALFORMED.filter((_, i) => i % 3 === 0),
      MALFORMED,
    );
    test.each(some)(
      '%s names what is wrong with an answer of %j',
      async (command, body, problem) => {
        const key = command === 'top' ? [] : ['k'];
        const { code, stdout, stderr } = await asked(body, 200, command, ...key);

        expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
        const prefix = ['sluice-client', ...key].join(': ');
        expect(stderr).toBe(`${prefix}: not an answer from Sluice: ${problem} (status 200)\n`);
      },
    );
  });
});
