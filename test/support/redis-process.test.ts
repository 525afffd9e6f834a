import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

import { describeWithRedisProgram } from './describe-with-redis-program.js';
import { startRedisProcess } from './redis-process.js';
import { until } from './until.js';

describeWithRedisProgram('a Redis process', () => {
  test('that keeps its data still has it after SIGKILL', async () => {
    const redis = await startRedisProcess({ keepsData: true });
    const { port, pid } = redis;
    await redis.command('SET', 'name', 'value');
    await redis.kill('SIGKILL');
    expect(redis.responsive).toBe(false);
    await expect(redis.command('PING')).rejects.toThrow();

    await redis.restart({ withData: true });
    expect(redis.port).toBe(port);
    expect(redis.pid).not.toBe(pid);
    expect(await redis.command('GET', 'name')).toBe('value');
  });

  test('restarted without its data is empty', async () => {
    const redis = await startRedisProcess({ keepsData: true });
    await redis.command('SET', 'name', 'value');
    await redis.restart({ withData: false });
    expect(await redis.command('DBSIZE')).toBe(0);
  });

  test('answers nothing while it is suspended, and answers pending commands once it continues', async () => {
    const redis = await startRedisProcess();
    const client = redis.connect();
    await client.ping();
    redis.signal('SIGSTOP');
    expect(redis.responsive).toBe(false);
    await until(() => stateOf(redis.pid!).startsWith('T'));
    const answer = client.incr('count');

    redis.signal('SIGCONT');
    expect(await answer).toBe(1);
    expect(redis.responsive).toBe(true);
    client.disconnect();
  });

  test('asks for the password it is configured with', async () => {
    const redis = await startRedisProcess({
      configure: () => ['requirepass secret'],
      client: { password: 'secret' },
    });
    expect(await redis.command('PING')).toBe('PONG');
    const stranger = redis.connect({ password: 'another', retryStrategy: null });
    stranger.on('error', () => undefined);
    await expect(stranger.ping()).rejects.toThrow(/WRONGPASS|closed/);
    await redis.command('ACL', 'LOG', 'RESET');
  });

  test('leaves no process and no folder when it is stopped, suspended or not', async () => {
    for (const suspended of [false, true]) {
      const redis = await startRedisProcess();
      expect(processRuns(redis.pid!)).toBe(true);
      if (suspended) redis.signal('SIGSTOP');
      await redis.stop();
      expect(processRuns(redis.pid!)).toBe(false);
      expect(existsSync(redis.folder)).toBe(false);
    }
  });

  test('says why it does not start', async () => {
    const start = startRedisProcess({ configure: () => ['no-such-setting yes'] });
    await expect(start).rejects.toThrow('no-such-setting');
  });
});

/** The state of a process in `ps`: T if it is suspended. */
function stateOf(pid: number): string {
  return execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' });
}

function processRuns(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
