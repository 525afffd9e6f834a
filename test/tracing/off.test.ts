import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { approve } from '../support/http-client.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../support/replica-process.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { uniqueKey } from '../support/unique-key.js';
import { tracedTo, useOtlpReceiver } from './otlp-receiver.js';

const PRELOAD = new URL('list-loaded-modules.mjs', import.meta.url).href;

const folder = useTemporaryFolder();
const receiver = useOtlpReceiver();
afterEach(killReplicas);

/** The modules of a replica that has served and stopped. */
async function loadedBy(
  settings: Readonly<Record<string, string>>,
): Promise<{ opentelemetry: string[]; all: string[]; replica: ReplicaProcess }> {
  const file = join(folder, uniqueKey());
  const replica = await startReplica({
    ...settings,
    NODE_OPTIONS: `--import=${PRELOAD}`,
    LOADED_MODULES_FILE: file,
  });
  await approve(replica.url, uniqueKey());
  await replica.kill('SIGTERM');
  const all = JSON.parse(readFileSync(file, 'utf8')) as string[];
  // prom-client loads the API itself, for its exemplars.
  const opentelemetry = all.filter((path) => /@opentelemetry.(?!api\b)/.test(path));
  return { all, opentelemetry, replica };
}

test.each([
  ['no variable of OpenTelemetry is set', () => ({})],
  ['only a name is', () => ({ OTEL_SERVICE_NAME: 'limits' })],
  ['it is disabled', () => ({ ...tracedTo(receiver()), OTEL_SDK_DISABLED: 'true' })],
  ['there is no exporter', () => ({ ...tracedTo(receiver()), OTEL_TRACES_EXPORTER: 'none' })],
])('where %s, nothing of it is loaded', async (_case, settings) => {
  const { all, opentelemetry, replica } = await loadedBy(settings());

  expect(all.some((path) => path.includes('ioredis'))).toBe(true);
  expect(opentelemetry).toEqual([]);
  expect(receiver().spans).toEqual([]);
  expect(replica.log.filter(({ msg }) => String(msg).includes('OpenTelemetry'))).toEqual([]);
});

test('where an endpoint is set, it is', async () => {
  expect((await loadedBy(tracedTo(receiver()))).opentelemetry).not.toEqual([]);
});

test.each([
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'one of http/protobuf, http/json'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317', 'a URL that starts with http:// or https://'],
  ['OTEL_TRACES_EXPORTER', 'zipkin', 'some of otlp, none'],
])('where %s is wrong, nothing is traced, and a line says why', async (variable, value, takes) => {
  const { opentelemetry, replica } = await loadedBy({
    ...tracedTo(receiver()),
    [variable]: value,
  });

  expect(opentelemetry).toEqual([]);
  expect(replica.log.filter(({ level }) => level === 'warn')).toEqual([
    expect.objectContaining({ variable, takes }),
    expect.objectContaining({
      msg: 'requests are not traced, since it is not clear where to send the spans',
    }),
  ]);
});

test('a wrong value of another, or a variable without effect, has a line, and requests are traced', async () => {
  const { replica } = await loadedBy({
    ...tracedTo(receiver()),
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_TRACE_SAMPLER: 'always_on',
  });

  expect(replica.log.filter(({ level }) => level === 'warn')).toEqual([
    expect.objectContaining({ variable: 'OTEL_TRACES_SAMPLER' }),
    expect.objectContaining({ variables: ['OTEL_TRACE_SAMPLER'] }),
  ]);
  expect(receiver().spans.map(({ name }) => name)).toEqual(['check']);
});
