import { diag, DiagLogLevel } from '@opentelemetry/api';
import { ExportResultCode, setGlobalErrorHandler } from '@opentelemetry/core';
import { defaultResource, type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { withinDeadline } from '../../common/deadline.js';
import { FrequentLog } from '../../common/frequent-log.js';
import { packageVersion } from '../../common/texts.js';
import type { StoreObserver } from '../../redis/shared/store-observer.js';
import { type TraceSettings, usesRatio } from '../trace-settings.js';
import { observeCalls, Tracer } from './otel-tracer.js';

/** How long the last spans may take to reach the collector when the replica stops. A stall of the replica does not count. */
const FLUSH_MILLIS = 1000;

/** What tracing needs of a replica. */
export interface TracingParts {
  readonly replicaId: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Traces this replica, and sends its spans to a collector. */
export async function startSdk(settings: TraceSettings, parts: TracingParts) {
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
        exporter: logged(await createExporter(settings), logger),
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
    tracer: new Tracer(spans, readsTraceparent),
    /** @returns an observer that creates spans for calls, and passes them on to `observer` */
    observerBefore: (observer: StoreObserver) => observeCalls(observer, spans),
    /** Sends the last spans. Gives up if the collector does not accept them soon. */
    close: async (): Promise<void> => {
      try {
        await withinDeadline(provider.shutdown(), FLUSH_MILLIS);
      } catch {
        logger.warn('the collector did not accept the last spans');
      }
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

/** The exporter of the configured protocol. It reads its own variables: address, headers, certificates, time limit. */
async function createExporter(settings: TraceSettings): Promise<SpanExporter> {
  const protocol =
    settings.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? settings.OTEL_EXPORTER_OTLP_PROTOCOL;
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/** Logs when the collector stops accepting spans, and when it accepts them again: one line each. */
function logged(exporter: SpanExporter, logger: Logger): SpanExporter {
  let lost = 0;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== ExportResultCode.SUCCESS) {
          // The body of an answer may have anything in it. Its status and the operating system's errors have no secrets.
          const { message: reason, code } = (result.error ?? {}) as NodeJS.ErrnoException;
          const problem = 'the collector does not accept spans; they are lost';
          if (lost === 0) logger.warn({ reason, code }, problem);
          lost += spans.length;
        } else if (lost > 0) {
          logger.info({ lost }, 'the collector accepts spans again');
          lost = 0;
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}

/**
 * Logs OpenTelemetry's warnings, one line a second at most: a certificate that can't be read, spans that are
 * dropped from a full queue, spans that the collector has rejected.
 */
function logNotices({ clock, logger }: Pick<TracingParts, 'clock' | 'logger'>) {
  const log = new FrequentLog<string>(clock, (notices) =>
    logger.warn({ notices }, 'OpenTelemetry'),
  );
  const note = (...words: unknown[]): void => log.note(words.map(String).join(' '));
  const ignore = (): void => undefined;
  diag.setLogger(
    { error: note, warn: note, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return log;
}
