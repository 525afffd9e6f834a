import type { LookupAddress } from 'node:dns';

import { HostLookups } from '../../../../src/redis/connections/host-lookups.js';

const FIRST: LookupAddress = { address: '10.0.0.7', family: 4 };
const SECOND: LookupAddress = { address: '10.0.0.8', family: 4 };
const PATIENCE_MILLIS = 20;

type Answer = readonly LookupAddress[] | Error | Promise<readonly LookupAddress[]>;

const failure = (code: string): Error => Object.assign(new Error(`getaddrinfo ${code}`), { code });

/** Look-ups of one name, with the answers of the test in order. */
function lookupsThat(...answers: Answer[]) {
  const failures: string[] = [];
  let asked = 0;
  const lookups = new HostLookups(() => {
    const answer = answers[asked]!;
    asked += 1;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  });
  const lookUp = lookups.for(PATIENCE_MILLIS, ({ message }) => failures.push(message));
  const ask = (all = true): Promise<unknown> =>
    new Promise((resolve, reject) => {
      lookUp('redis', { all }, (error, address, family) => {
        if (error) reject(error);
        else resolve(all ? address : [address, family]);
      });
    });
  return { ask, failures, asked: () => asked };
}

test('a name has the current addresses of DNS', async () => {
  const { ask, failures } = lookupsThat([FIRST], [SECOND, FIRST], [SECOND]);
  expect(await ask()).toEqual([FIRST]);
  expect(await ask()).toEqual([SECOND, FIRST]);
  expect(await ask(false)).toEqual([SECOND.address, 4]);
  expect(failures).toEqual([]);
});

test.each([['EAI_AGAIN'], ['ENOTFOUND']])(
  'a name keeps its last addresses while a look-up fails with %s',
  async (code) => {
    const { ask, failures } = lookupsThat([FIRST], [SECOND, FIRST], failure(code), failure(code));
    await ask();
    await ask();
    expect(await ask()).toEqual([SECOND, FIRST]);
    expect(await ask(false)).toEqual([SECOND.address, 4]);
    const message = `DNS look-up of redis failed: ${code}; trying the last addresses 10.0.0.8, 10.0.0.7`;
    expect(failures).toEqual([message, message]);
  },
);

test('a name that was never found has no addresses, and the error gives the reason', async () => {
  const { ask, failures } = lookupsThat(failure('EAI_AGAIN'));
  await expect(ask()).rejects.toMatchObject({
    message: 'DNS look-up of redis failed: EAI_AGAIN',
    code: 'EAI_AGAIN',
  });
  expect(failures).toEqual([]);
});

test('a look-up that hangs delays callers for a while, is shared, and counts when it is answered', async () => {
  let answer: (addresses: readonly LookupAddress[]) => void = () => undefined;
  const hanging = new Promise<readonly LookupAddress[]>((resolve) => {
    answer = resolve;
  });
  const { ask, failures, asked } = lookupsThat([FIRST], hanging, failure('EAI_AGAIN'));
  await ask();
  expect(await Promise.all([ask(), ask()])).toEqual([[FIRST], [FIRST]]);
  expect(await ask()).toEqual([FIRST]);
  expect(asked()).toBe(2);
  expect(failures[0]).toBe(
    `DNS look-up of redis failed: no answer within ${PATIENCE_MILLIS} ms; trying the last address 10.0.0.7`,
  );

  answer([SECOND]);
  await hanging;
  expect(await ask()).toEqual([SECOND]);
});
