import { describeCommandLine, useCommandLine } from '../../../support/client/command-line.js';
import { debugState, untilWaiting } from '../../../support/debug-state.js';
import { send } from '../../../support/http-client.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { useApp } from '../../../support/use-apps.js';

const CTRL_C = '\u0003';
const CLEAR_LINE = '\r\u001b[K';

const app = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));

describeCommandLine('on a terminal, sluice-client', () => {
  const start = useCommandLine();
  const onTerminal = (...args: string[]) =>
    start(args, { env: { SLUICE_URL: app.url }, onTerminal: true });

  test('run shows its place in a line, and clears it when CMD begins', async () => {
    const key = uniqueKey();
    await send(app.url, 'POST', `/rate/${key}?maxRequests=1`);

    const command = onTerminal('run', key, '--', 'echo', 'CMD');
    await command.written(/60 min/);
    await send(app.url, 'POST', `/rate/${key}?maxRequests=2`);

    expect(await command.ended).toBe(0);
    const place = `${CLEAR_LINE}${key}: position 1, at least 60 min`;
    expect(command.stdout.startsWith(place)).toBe(true);
    expect(
      command.stdout.endsWith(`${CLEAR_LINE}sluice-client: ${key}: at most 2 at a time\r\nCMD\r\n`),
    ).toBe(true);
  });

  test('run lets CMD read from the terminal, which sends Ctrl-C to CMD once', async () => {
    const key = uniqueKey();
    const script = `trap 'echo interrupted' INT; echo ready; read line; read line; echo "got $line"; exit 6`;

    const command = onTerminal('run', key, '--', 'bash', '-c', script);
    await command.written(/ready/);
    command.type(CTRL_C);
    await command.written(/interrupted/);
    command.type('one\ntwo\n');

    expect(await command.ended).toBe(6);
    expect(command.stdout.match(/interrupted/g)).toHaveLength(1);
    expect(command.stdout).toContain('got two');
    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
  });

  test('run gives its place back after Ctrl-C, and clears its line', async () => {
    const key = uniqueKey();
    await send(app.url, 'POST', `/rate/${key}`);

    const command = onTerminal('run', key, '--', 'echo', 'CMD');
    await untilWaiting(app.url, key, 1);
    await command.written(/position/);
    command.type(CTRL_C);

    expect(await command.ended).toBe(130);
    expect(command.stdout.endsWith(CLEAR_LINE)).toBe(true);
    expect(await debugState(app.url, key)).toMatchObject({ NumWaiting: 0 });
  });

  test.each([
    ['q', 'q'],
    ['Ctrl-C', CTRL_C],
  ])(
    'top draws keys again and again until %s is typed, and restores the screen',
    async (_, typed) => {
      const [first, second] = [uniqueKey(), uniqueKey()];
      const pause = (key: string) => send(app.url, 'PUT', `/rate/${key}?pauseMillis=600000`);
      await pause(first);

      const command = onTerminal('top', '--interval', '50ms');
      await command.written(new RegExp(`${first} +paused`));
      await pause(second);
      await command.written(new RegExp(`${second} +paused`));
      command.type(typed);

      expect(await command.ended).toBe(0);
      expect(command.stdout.startsWith('\u001b[?1049h')).toBe(true);
      expect(command.stdout.endsWith('\u001b[?1049l')).toBe(true);
      for (const key of [first, second]) await send(app.url, 'PUT', `/rate/${key}?pauseMillis=0`);
    },
  );
});
