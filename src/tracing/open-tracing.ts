import type { TracingParts } from './sdk/start-sdk.js';
import { askedTracing, type Environment } from './trace-settings.js';

/**
 * Traces if the variables of OpenTelemetry ask for it. Its packages are loaded only in this case.
 * @returns undefined if requests are not traced
 */
export async function openTracing(environment: Environment, parts: TracingParts) {
  const { logger } = parts;
  const asked = askedTracing(environment);
  if (!asked) return undefined;
  for (const { variable, takes } of asked.ignored) {
    logger.warn({ variable, takes }, 'invalid value of an OpenTelemetry variable ignored');
  }
  if (asked.unknown.length > 0) {
    logger.warn({ variables: asked.unknown }, 'unsupported OpenTelemetry variables ignored');
  }
  if (!asked.isOn) {
    logger.warn('requests are not traced: a variable that says how to send spans is invalid');
    return undefined;
  }
  const { startSdk } = await import('./sdk/start-sdk.js');
  return startSdk(asked.settings, parts);
}
