import { setTimeout as delay } from 'node:timers/promises';

import { setGlobalErrorHandler } from '@opentelemetry/core';
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';

import { packageVersion } from '../../common/package-version.js';
import type { Tracing, TracingParts } from '../tracing.js';
import { type TraceSettings, usesRatio } from '../trace-settings.js';
import { observeCalls } from './call-spans.js';
import { createExporter, LoggedExporter } from './exporter.js';
import { logNotices } from './notices.js';
import { otelTracer } from './otel-tracer.js';

/** How long the last spans may take to reach the collector when the replica stops. */
const FLUSH_MILLIS = 1000;

/** Starts tracing as the settings say. */
export async function startSdk(settings: TraceSettings, parts: TracingParts): Promise<Tracing> {
  const { logger } = parts;
  const notices = logNotices(parts);
  // Its errors are failed exports, which have log lines of their own.
  setGlobalErrorHandler(() => undefined);
  const provider = new TracerProvider({
    resource: resourceOf(settings, parts.replicaId),
    sampler: samplerOf(settings),
    spanProcessors: [
      // Its queue is bounded: spans that the collector does not accept in time are dropped.
      new BatchSpanProcessor({
        exporter: new LoggedExporter(await createExporter(settings), logger),
        scheduledDelayMillis: settings.OTEL_BSP_SCHEDULE_DELAY,
        exportTimeoutMillis: settings.OTEL_BSP_EXPORT_TIMEOUT,
        maxQueueSize: settings.OTEL_BSP_MAX_QUEUE_SIZE,
        maxExportBatchSize: settings.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
      }),
    ],
  });
  const spans = provider.getTracer('sluice', packageVersion());
  const readsTraceparent = settings.OTEL_PROPAGATORS.includes('tracecontext');
  const { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio } = settings;
  logger.info({ sampler, ...(usesRatio(settings) ? { ratio } : {}) }, 'requests are traced');
  return {
    tracer: otelTracer(spans, readsTraceparent),
    observerBefore: (observer) => observeCalls(observer, spans),
    close: async () => {
      const areSent = await Promise.race([
        provider.shutdown().then(
          () => true,
          () => false,
        ),
        delay(FLUSH_MILLIS, false, { ref: false }),
      ]);
      if (!areSent) logger.warn('the collector did not accept the last spans');
      notices.close();
    },
  };
}

function samplerOf(settings: TraceSettings): Sampler {
  const { OTEL_TRACES_SAMPLER: name } = settings;
  const root = usesRatio(settings)
    ? new TraceIdRatioBasedSampler(settings.OTEL_TRACES_SAMPLER_ARG)
    : name.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new AlwaysOnSampler();
  return name.startsWith('parentbased') ? new ParentBasedSampler({ root }) : root;
}

function resourceOf(settings: TraceSettings, replicaId: string): Resource {
  const { OTEL_SERVICE_NAME: name, OTEL_RESOURCE_ATTRIBUTES: attributes } = settings;
  return defaultResource().merge(
    resourceFromAttributes({
      'service.name': 'sluice',
      'service.version': packageVersion(),
      'service.instance.id': replicaId,
      ...attributes,
      ...(name === undefined ? {} : { 'service.name': name }),
    }),
  );
}
