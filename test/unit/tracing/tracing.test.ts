import { askedTracing, type Environment } from '../../../src/tracing/trace-settings.js';
import { callersIds } from '../../../src/tracing/trace-context.js';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' };

function asked(environment: Environment) {
  const result = askedTracing(environment);
  if (!result) throw new Error('nothing asks for traces');
  return result;
}

test.each([
  ['nothing', {}],
  ['a name and a sampler', { OTEL_SERVICE_NAME: 'a', OTEL_TRACES_SAMPLER: 'always_on' }],
  ['an empty endpoint', { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
  ['an endpoint, but no exporter', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
  ['an endpoint, but disabled', { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }],
])('%s asks for no traces', (_case, environment) => {
  expect(askedTracing(environment)).toBeUndefined();
});

test.each([
  ['an endpoint', ENDPOINT],
  ['an endpoint for traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://a/v1/traces' }],
  ['an exporter', { OTEL_TRACES_EXPORTER: 'otlp' }],
])('%s asks for traces', (_case, environment) => {
  expect(asked(environment)).toMatchObject({ isOn: true, ignored: [], unknown: [] });
});

test('has the defaults of OpenTelemetry', () => {
  expect(asked(ENDPOINT).settings).toMatchObject({
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_TRACES_SAMPLER: 'parentbased_always_on',
    OTEL_TRACES_SAMPLER_ARG: 1,
    OTEL_PROPAGATORS: ['tracecontext'],
    OTEL_BSP_MAX_QUEUE_SIZE: 2048,
    OTEL_RESOURCE_ATTRIBUTES: {},
  });
});

test.each([
  ['OTEL_TRACES_SAMPLER', 'often'],
  ['OTEL_PROPAGATORS', 'b3'],
  ['OTEL_PROPAGATORS', 'tracecontext,b3'],
  ['OTEL_BSP_MAX_QUEUE_SIZE', '-1'],
  ['OTEL_BSP_SCHEDULE_DELAY', 'soon'],
  ['OTEL_RESOURCE_ATTRIBUTES', 'a=b=c'],
  ['OTEL_RESOURCE_ATTRIBUTES', 'nothing'],
  ['OTEL_RESOURCE_ATTRIBUTES', 'a=%'],
  ['OTEL_METRICS_EXPORTER', 'otlp'],
  ['OTEL_SDK_DISABLED', 'maybe'],
])('only %s=%s counts as not set', (variable, value) => {
  const { settings, ignored, isOn } = asked({ ...ENDPOINT, [variable]: value });

  expect(ignored.map((wrong) => wrong.variable)).toEqual([variable]);
  expect(JSON.stringify(ignored)).not.toContain(value);
  expect(settings).toEqual(asked(ENDPOINT).settings);
  expect(isOn).toBe(true);
});

test.each([
  ['OTEL_TRACES_EXPORTER', 'zipkin', {}, false],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', {}, false],
  [
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'grpc',
    { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' },
    true,
  ],
  ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'grpc', {}, false],
])('with %s=%s and %j, traces are on: %s', (variable, value, others, isOn) => {
  const result = asked({ ...ENDPOINT, [variable]: value, ...others });

  expect(result.ignored.map((wrong) => wrong.variable)).toEqual([variable]);
  expect(result.isOn).toBe(isOn);
});

test.each([
  ['2', 'parentbased_traceidratio'],
  ['-0.5', 'traceidratio'],
  ['0.1', 'always_on'],
])('the share %s counts as not set with the sampler %s', (share, sampler) => {
  const environment = {
    ...ENDPOINT,
    OTEL_TRACES_SAMPLER_ARG: share,
    OTEL_TRACES_SAMPLER: sampler,
  };

  expect(asked(environment).ignored).toMatchObject([{ variable: 'OTEL_TRACES_SAMPLER_ARG' }]);
});

test('variables of the exporter are left to it, and others that nothing reads are named', () => {
  const ofExporter = {
    OTEL_EXPORTER_OTLP_HEADERS: 'Bearer secret',
    OTEL_EXPORTER_OTLP_TIMEOUT: 'x',
  };
  const result = asked({ ...ENDPOINT, ...ofExporter, OTEL_TRACE_SAMPLER: 'always_on' });

  expect(result).toMatchObject({ isOn: true, ignored: [], unknown: ['OTEL_TRACE_SAMPLER'] });
});

test('attributes are percent-decoded', () => {
  const attributes = ' a = b%2Cc ,d=,';

  expect(
    asked({ ...ENDPOINT, OTEL_RESOURCE_ATTRIBUTES: attributes }).settings.OTEL_RESOURCE_ATTRIBUTES,
  ).toEqual({ a: 'b,c', d: '' });
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const parent = { trace_id: TRACE, span_id: SPAN };

test.each([
  ['01', '01'],
  ['00', '00'],
  ['03', '01'],
  ['02', '00'],
  ['ff', '01'],
])('the flags %s become %s', (flags, trace_flags) => {
  expect(callersIds(`00-${TRACE}-${SPAN}-${flags}`)).toEqual({ ...parent, trace_flags });
});

test.each([`cc-${TRACE}-${SPAN}-01`, `01-${TRACE}-${SPAN}-01-what-the-future-will-be`])(
  'the known part of a later version is read: %s',
  (header) => {
    expect(callersIds(header)).toEqual({ ...parent, trace_flags: '01' });
  },
);

test.each([
  ['none', undefined],
  ['an empty one', ''],
  ['two', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ['a list of two', [`00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01`]],
  ['the version ff', `ff-${TRACE}-${SPAN}-01`],
  ['more after version 00', `00-${TRACE}-${SPAN}-01-more`],
  ['a later version with more after no dash', `01-${TRACE}-${SPAN}-01.more`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['capitals', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ['a trace that is short', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['a span that is long', `00-${TRACE}-${SPAN}0-01`],
  ['no flags', `00-${TRACE}-${SPAN}`],
  ['flags of one digit', `00-${TRACE}-${SPAN}-1`],
  ['an invalid digit', `00-${TRACE}-${SPAN}-0g`],
])('is ignored: %s', (_case, header) => {
  expect(callersIds(header)).toBeUndefined();
});
