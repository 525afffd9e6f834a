import { existsSync } from 'node:fs';

import { describeWithRedisProgram } from './describe-with-redis-program.js';
import { startRedisProcess } from './redis-process.js';

describeWithRedisProgram('a Redis process', () => {
  test('restarted without its data is empty', async () => {
    const redis = await startRedisProcess({ keepsData: true });
    await redis.command('SET', 'name', 'value');
    await redis.restart({ withData: false });
    expect(await redis.command('DBSIZE')).toBe(0);
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

function processRuns(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
