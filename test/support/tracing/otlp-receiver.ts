import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

import { until } from '../until.js';
import { type OtlpBody, type ReceivedSpan, spansIn } from './otlp-json.js';

interface Export {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A collector that receives spans over HTTP. */
export interface OtlpReceiver {
  readonly url: string;
  /** All requests so far. */
  readonly exports: readonly Export[];
  /** All spans in JSON so far. */
  readonly spans: readonly ReceivedSpan[];
  /** The first span, past or future, for which `matches` holds. */
  span(matches: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
  close(): Promise<void>;
}

export async function startOtlpReceiver(port = 0): Promise<OtlpReceiver> {
  const exports: Export[] = [];
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      exports.push({ path: request.url ?? '', headers: request.headers, body });
      const type = request.headers['content-type'] ?? '';
      if (type === 'application/json') {
        spans.push(...spansIn(JSON.parse(body.toString()) as OtlpBody));
      }
      response.setHeader('Content-Type', type);
      response.end(type === 'application/json' ? '{}' : '');
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exports,
    spans,
    span: (matches) => until(() => spans.find(matches)),
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A receiver for each test of this file. */
export function useOtlpReceiver(): () => OtlpReceiver {
  let receiver: OtlpReceiver | undefined;
  beforeEach(async () => {
    receiver = await startOtlpReceiver();
  });
  afterEach(() => receiver?.close());
  return () => {
    if (!receiver) throw new Error('the receiver has not started yet');
    return receiver;
  };
}

/** Settings with which a replica sends its spans to a receiver, in JSON and at once. */
export function tracedTo({ url }: Pick<OtlpReceiver, 'url'>): Readonly<Record<string, string>> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '10',
  };
}
