import { z } from 'zod';

import { wholeNumber } from '../config/text-schemas.js';

const SAMPLERS = [
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
] as const;
const PROTOCOLS = ['http/protobuf', 'http/json'] as const;
const MANY = 1_000_000_000;

function oneOf<const Values extends readonly string[]>(values: Values) {
  return z
    .string()
    .toLowerCase()
    .pipe(z.enum(values, { error: `one of ${values.join(', ')}` }));
}

/** Values with commas between them. */
function someOf<const Values extends readonly string[]>(values: Values) {
  const error = `some of ${values.join(', ')}`;
  return z
    .string()
    .toLowerCase()
    .transform((text) => text.split(',').map((value) => value.trim()))
    .pipe(z.array(z.enum(values, { error })));
}

function atLeast(min: number) {
  return wholeNumber({ min, max: MANY });
}

function ratio() {
  const takes = 'a number from 0 to 1';
  return z
    .string()
    .regex(/^\d+(\.\d+)?$/, takes)
    .transform(Number)
    .refine((value) => value <= 1, takes);
}

/** Names and values as OpenTelemetry writes them: `a=1,b=2`, percent-encoded. */
function pairs() {
  return z.string().transform((text, context): Record<string, string> => {
    try {
      const entries = text.split(',').filter((pair) => pair.trim() !== '');
      return Object.fromEntries(entries.map(parsePair));
    } catch {
      context.addIssue('name=value, with commas between several, and percent-encoded');
      return z.NEVER;
    }
  });
}

function parsePair(pair: string): [string, string] {
  const [name = '', value, ...more] = pair.split('=').map((part) => part.trim());
  if (name === '' || value === undefined || more.length > 0) throw new Error('no pair');
  return [decodeURIComponent(name), decodeURIComponent(value)];
}

/** OpenTelemetry's exporter reads the variables with these names, the protocol excepted, and checks their values. */
const OF_EXPORTER = 'OTEL_EXPORTER_OTLP_';

/**
 * The variables of OpenTelemetry that Sluice reads. A table of docs/tracing.md says the same, and a test compares
 * the two.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
 */
export const traceSettingsSchema = z.object({
  OTEL_SDK_DISABLED: oneOf(['true', 'false']).default('false'),
  OTEL_TRACES_EXPORTER: someOf(['otlp', 'none']).optional(),
  OTEL_METRICS_EXPORTER: z.literal('none', 'none').optional(),
  OTEL_LOGS_EXPORTER: z.literal('none', 'none').optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: oneOf(PROTOCOLS).default('http/protobuf'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: oneOf(PROTOCOLS).optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: pairs().default({}),
  OTEL_PROPAGATORS: someOf(['tracecontext', 'baggage', 'none']).default(['tracecontext']),
  OTEL_TRACES_SAMPLER: oneOf(SAMPLERS).default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: ratio().default(1),
  OTEL_BSP_SCHEDULE_DELAY: atLeast(1).default(5000),
  OTEL_BSP_EXPORT_TIMEOUT: atLeast(1).default(30_000),
  OTEL_BSP_MAX_QUEUE_SIZE: atLeast(1).default(2048),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: atLeast(1).default(512),
});

export type TraceSettings = z.infer<typeof traceSettingsSchema>;
export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that say how to send spans. In each group the first that is set decides. */
const DIRECTIONS = [
  ['OTEL_TRACES_EXPORTER'],
  ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'],
];

/**
 * What the environment asks for. An invalid value never stops the start, as OpenTelemetry requires: the variables are
 * often set for all services of a cluster.
 * @returns undefined if nothing asks for traces, so that no value matters
 */
export function askedTracing(environment: Environment) {
  const set = new Map<string, string>();
  for (const [name, value = ''] of Object.entries(environment)) {
    if (name.startsWith('OTEL_') && value.trim() !== '') set.set(name, value.trim());
  }
  if (!asksForTraces(set)) return undefined;
  const { settings, ignored } = readEach(set);
  const isRatioIdle = set.has('OTEL_TRACES_SAMPLER_ARG') && !usesRatio(settings);
  const takes = 'effect only with the sampler traceidratio or parentbased_traceidratio';
  return {
    settings,
    ignored: isRatioIdle ? [...ignored, { variable: 'OTEL_TRACES_SAMPLER_ARG', takes }] : ignored,
    /** Variables of OpenTelemetry that neither Sluice nor the exporter reads. */
    unknown: [...set.keys()].filter(
      (name) => !(name in traceSettingsSchema.shape) && !name.startsWith(OF_EXPORTER),
    ),
    /** Whether the variables that say how to send spans are valid. */
    isOn: DIRECTIONS.every((names) => {
      const deciding = names.find((name) => set.has(name));
      return ignored.every(({ variable }) => variable !== deciding);
    }),
  };
}

export function usesRatio({ OTEL_TRACES_SAMPLER: sampler }: TraceSettings): boolean {
  return sampler.endsWith('traceidratio');
}

function asksForTraces(set: ReadonlyMap<string, string>): boolean {
  if (set.get('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return false;
  const exporter = set.get('OTEL_TRACES_EXPORTER');
  if (exporter !== undefined) return exporter.toLowerCase() !== 'none';
  return set.has('OTEL_EXPORTER_OTLP_ENDPOINT') || set.has('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
}

/** Parses each variable separately, so that an invalid one does not affect the others. */
function readEach(set: ReadonlyMap<string, string>) {
  const settings: Record<string, unknown> = {};
  const ignored: { variable: string; takes: string }[] = [];
  for (const [variable, schema] of Object.entries(traceSettingsSchema.shape)) {
    const result = schema.safeParse(set.get(variable));
    if (!result.success) {
      ignored.push({ variable, takes: result.error.issues[0]?.message ?? 'another value' });
    }
    settings[variable] = result.success ? result.data : schema.parse(undefined);
  }
  return { settings: settings as TraceSettings, ignored };
}
