import { loadedBy } from '../../support/loaded-modules.js';
import { killReplicas } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { tracedTo, useOtlpReceiver } from '../../support/tracing/otlp-receiver.js';

const folder = useTemporaryFolder();
const receiver = useOtlpReceiver();
afterEach(killReplicas);

/** What of OpenTelemetry is among modules. prom-client loads the API itself, for its exemplars. */
function ofOpenTelemetry(all: readonly string[]): string[] {
  return all.filter((path) => /@opentelemetry.(?!api\b)/.test(path));
}

test.each([
  ['no variable of OpenTelemetry is set', () => ({})],
  ['only a name is', () => ({ OTEL_SERVICE_NAME: 'limits' })],
  ['it is disabled', () => ({ ...tracedTo(receiver()), OTEL_SDK_DISABLED: 'true' })],
  ['there is no exporter', () => ({ ...tracedTo(receiver()), OTEL_TRACES_EXPORTER: 'none' })],
])('where %s, nothing of it is loaded', async (_case, settings) => {
  const { all, replica } = await loadedBy(settings(), folder);

  expect(all.some((path) => path.includes('ioredis'))).toBe(true);
  expect(ofOpenTelemetry(all)).toEqual([]);
  expect(receiver().spans).toEqual([]);
  expect(replica.log.filter(({ msg }) => String(msg).includes('OpenTelemetry'))).toEqual([]);
});

test('where an endpoint is set, it is', async () => {
  const { all } = await loadedBy(tracedTo(receiver()), folder);
  expect(ofOpenTelemetry(all)).not.toEqual([]);
});

test.each([
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'one of http/protobuf, http/json'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317', 'a URL that starts with http:// or https://'],
  ['OTEL_TRACES_EXPORTER', 'zipkin', 'some of otlp, none'],
])('where %s is wrong, nothing is traced, and a line says why', async (variable, value, takes) => {
  const { all, replica } = await loadedBy({ ...tracedTo(receiver()), [variable]: value }, folder);

  expect(ofOpenTelemetry(all)).toEqual([]);
  expect(replica.log.filter(({ level }) => level === 'warn')).toEqual([
    expect.objectContaining({ variable, takes }),
    expect.objectContaining({
      msg: 'requests are not traced: a variable that says where to send spans is invalid',
    }),
  ]);
});

test('a wrong value of another, or a variable without effect, has a line, and requests are traced', async () => {
  const variables = { OTEL_TRACES_SAMPLER: 'sometimes', OTEL_TRACE_SAMPLER: 'always_on' };
  const { replica } = await loadedBy({ ...tracedTo(receiver()), ...variables }, folder);

  expect(replica.log.filter(({ level }) => level === 'warn')).toEqual([
    expect.objectContaining({ variable: 'OTEL_TRACES_SAMPLER' }),
    expect.objectContaining({ variables: ['OTEL_TRACE_SAMPLER'] }),
  ]);
  expect(receiver().spans.map(({ name }) => name)).toEqual(['check']);
});
