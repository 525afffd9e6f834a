import { quit } from '../../../../src/redis/connections/quit.js';

/** A client whose QUIT ends in this way. @returns its calls, in their order */
async function quitting(answer: () => Promise<unknown>): Promise<string[]> {
  const calls: string[] = [];
  const client = {
    quit: () => {
      calls.push('quit');
      return answer();
    },
    disconnect: () => calls.push('disconnect'),
  };
  await quit(client, 1);
  return calls;
}

test('a connection is closed by its answer to QUIT', async () => {
  expect(await quitting(() => Promise.resolve('OK'))).toEqual(['quit']);
});

test.each([
  ['fails', () => Promise.reject(new Error('Connection is closed.'))],
  ['is not answered in time', () => new Promise(() => undefined)],
])('a connection whose QUIT %s is cut', async (_how, answer) => {
  expect(await quitting(answer)).toEqual(['quit', 'disconnect']);
});
