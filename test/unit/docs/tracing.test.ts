import { askedTracing, traceSettingsSchema } from '../../../src/tracing/trace-settings.js';
import { inBackticks, tableRows } from '../../support/docs/tables.js';

const rows = tableRows('docs/tracing.md', ['Variable of OpenTelemetry', 'Default', 'Takes']);
const variablesOf = (cell = ''): string[] => cell.match(/OTEL_\w+/g) ?? [];
/** These have no default value in the schema. */
const DEFAULTS_ELSEWHERE = /^OTEL_TRACES_EXPORTER$|^OTEL_SERVICE_NAME$/;

/** A default as the table writes it; undefined if there is none, or it is empty. */
function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.join();
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

test('the table of variables names all variables that Sluice takes, and no other', () => {
  const names = rows.flatMap(([variables]) => variablesOf(variables));

  expect(names.sort()).toEqual(Object.keys(traceSettingsSchema.shape).sort());
});

test('the table of variables has the default of each variable', () => {
  const defaults: Readonly<Record<string, unknown>> = askedTracing({
    OTEL_TRACES_EXPORTER: 'otlp',
  })!.settings;
  const checked = rows.filter(([variables]) =>
    variablesOf(variables).every((name) => !DEFAULTS_ELSEWHERE.test(name)),
  );

  expect(checked.length).toBeGreaterThan(10);
  for (const [variables, text] of checked) {
    const [name] = variablesOf(variables);
    expect([name, inBackticks(text)]).toEqual([name, textOf(defaults[name!])]);
  }
});
