import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';

import type { TraceSettings } from '../trace-settings.js';

/** The exporter of the configured protocol. It reads its own variables: address, headers, certificates, time limit. */
export async function createExporter(settings: TraceSettings): Promise<SpanExporter> {
  const protocol =
    settings.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? settings.OTEL_EXPORTER_OTLP_PROTOCOL;
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/** Logs when the collector stops accepting spans, and when it accepts them again: one line each. */
export class LoggedExporter implements SpanExporter {
  #lost = 0;

  constructor(
    private readonly exporter: SpanExporter,
    private readonly logger: Logger,
  ) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.exporter.export(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) this.#taken();
      else this.#notTaken(spans.length, result.error);
      done(result);
    });
  }

  async shutdown(): Promise<void> {
    await this.exporter.shutdown();
  }

  #taken(): void {
    if (this.#lost === 0) return;
    this.logger.info({ lost: this.#lost }, 'the collector accepts spans again');
    this.#lost = 0;
  }

  #notTaken(spans: number, error: Error | undefined): void {
    if (this.#lost === 0) {
      // The body of an answer may have anything in it. Its status and the operating system's errors have no secrets.
      const { message: reason, code } = (error ?? {}) as { message?: string; code?: unknown };
      this.logger.warn({ reason, code }, 'the collector does not accept spans; they are lost');
    }
    this.#lost += spans;
  }
}
