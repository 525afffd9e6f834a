import { failureOf, useGateways } from '../../support/grpc-gateway.js';
import { useGrpcServices } from '../../support/grpc-service.js';
import { RecordingLimiter } from '../../support/recording-limiter.js';

const RULES = [
  {
    key_pattern: 'edge:path=/llm',
    queue: { lanes: [{ name: 'interactive', head_start_millis: 30_000 }, { name: 'batch' }] },
    max_wait_millis: 5000,
  },
  { key_pattern: 'edge:path=/vendor', queue: { fair: true, weights: { gold: 4 } } },
];

const start = useGrpcServices();
const gatewayOf = useGateways();

/** The answer of the descriptors, each of whose entries is `<key>=<value>`, and what the limiter was asked. */
async function ask(...descriptors: readonly (readonly string[])[]) {
  const limiter = new RecordingLimiter(...RULES);
  const environment = { GRPC_KEY_TEMPLATE: '{domain}:{entries}' };
  const gateway = gatewayOf(await start(limiter, { environment, rules: RULES }));
  const answer = gateway.ask({
    domain: 'edge',
    descriptors: descriptors.map((entries) => ({
      entries: entries.map((entry) => {
        const [key = '', value = ''] = entry.split('=');
        return { key, value };
      }),
    })),
  });
  return { answer, limiter };
}

test('entries name the lane or the group, and are no part of the key', async () => {
  const { answer, limiter } = await ask(
    ['lane=interactive', 'path=/llm'],
    ['path=/llm'],
    ['path=/vendor', 'group=gold'],
    ['path=/vendor'],
    ['path=/other'],
  );
  expect((await answer).overall_code).toBe('OK');
  const askedOf = (key: string) =>
    limiter.asked.filter((request) => request.key === `edge:path=/${key}`).map(({ list }) => list);
  expect(askedOf('llm')).toEqual([
    { kind: 'lane', name: 'interactive', headStartMillis: 30_000 },
    { kind: 'lane', name: 'batch', headStartMillis: 0 },
  ]);
  expect(askedOf('vendor')).toMatchObject([
    { kind: 'group', name: 'gold', weight: 4 },
    { kind: 'group', name: '', weight: 1 },
  ]);
  expect(askedOf('other')).toEqual([undefined]);
});

test('entries of keys without lanes or groups are a part of the key, as they were', async () => {
  const { answer, limiter } = await ask(
    ['path=/other', 'lane=batch'],
    ['path=/llm', 'group=gold'],
    ['lane=batch'],
  );
  expect((await answer).overall_code).toBe('OK');
  expect(limiter.asked).toMatchObject([
    { key: 'edge:path=/other,lane=batch' },
    { key: 'edge:path=/llm,group=gold' },
    { key: 'edge:lane=batch' },
  ]);
});

test.each<[entries: readonly string[], message: string]>([
  [['path=/llm', 'lane=bulk'], 'lane must be one of interactive, batch'],
  [
    ['path=/vendor', 'group='],
    'descriptors[0].entries[1].value must be text of 1 to 64 bytes of UTF-8 without control characters',
  ],
  [['path=/vendor', 'group=a', 'group=b'], 'descriptors[0].entries must have group once'],
])('a descriptor with the entries %j is an invalid argument', async (entries, message) => {
  const { answer, limiter } = await ask(entries);
  expect(await failureOf(answer)).toEqual(['INVALID_ARGUMENT', message]);
  expect(limiter.asked).toEqual([]);
});
