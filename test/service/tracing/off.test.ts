import { loadedBy } from '../../support/loaded-modules.js';
import { killReplicas } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { tracedTo, useOtlpReceiver } from '../../support/tracing/otlp-receiver.js';

const folder = useTemporaryFolder();
const receiver = useOtlpReceiver();
afterEach(killReplicas);

/** The modules of OpenTelemetry except its API, which prom-client loads for exemplars. */
function ofOpenTelemetry(all: readonly string[]): string[] {
  return all.filter((path) => /@opentelemetry.(?!api\b)/.test(path));
}

test.each([
  ['no variable of OpenTelemetry is set', () => ({})],
  ['the SDK is disabled', () => ({ ...tracedTo(receiver()), OTEL_SDK_DISABLED: 'true' })],
])('OpenTelemetry is not loaded if %s', async (_case, settings) => {
  const { all, replica } = await loadedBy(settings(), folder);

  expect(all.some((path) => path.includes('ioredis'))).toBe(true);
  expect(ofOpenTelemetry(all)).toEqual([]);
  expect(receiver().spans).toEqual([]);
  expect(replica.log.filter(({ msg }) => String(msg).includes('OpenTelemetry'))).toEqual([]);
});

test('OpenTelemetry is loaded if an endpoint is set', async () => {
  const { all } = await loadedBy(tracedTo(receiver()), folder);
  expect(ofOpenTelemetry(all)).not.toEqual([]);
});

test.each([
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'one of http/protobuf, http/json'],
  ['OTEL_TRACES_EXPORTER', 'zipkin', 'some of otlp, none'],
])(
  'nothing is traced if %s is invalid, and a log line says why',
  async (variable, value, takes) => {
    const { all, replica } = await loadedBy({ ...tracedTo(receiver()), [variable]: value }, folder);

    expect(ofOpenTelemetry(all)).toEqual([]);
    expect(replica.log.filter(({ level }) => level === 'warn')).toEqual([
      expect.objectContaining({ variable, takes }),
      expect.objectContaining({
        msg: 'requests are not traced: a variable that says how to send spans is invalid',
      }),
    ]);
  },
);

test('requests are traced if another variable is invalid or has no effect, and a log line says so', async () => {
  const variables = { OTEL_TRACES_SAMPLER: 'sometimes', OTEL_TRACE_SAMPLER: 'always_on' };
  const { replica } = await loadedBy({ ...tracedTo(receiver()), ...variables }, folder);

  expect(replica.log.filter(({ level }) => level === 'warn')).toEqual([
    expect.objectContaining({ variable: 'OTEL_TRACES_SAMPLER' }),
    expect.objectContaining({ variables: ['OTEL_TRACE_SAMPLER'] }),
  ]);
  expect(receiver().spans.map(({ name }) => name)).toEqual(['check']);
});
