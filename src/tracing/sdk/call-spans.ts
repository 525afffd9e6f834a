import { ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api';

import type { CallLoad, StoreObserver } from '../../redis/shared/store-observer.js';
import { RequestSpan } from './request-spans.js';

/** The scripts that carry requests. Their callers and the sampler decide whether these are traced. */
const CARRIERS: ReadonlySet<string> = new Set(['check', 'release', 'amend']);

/**
 * Creates a span for each script call that has ended, and passes all events on to `observer`.
 *
 * The span of a call with checks links to all recorded spans of these checks. It is below the first one, so that it is
 * recorded if that one is, and the others link to it. Calls that the replica makes on its own have their own traces.
 */
export function observeCalls(observer: StoreObserver, tracer: Tracer): StoreObserver {
  return {
    ...observer,
    called: (script, seconds, outcome, load) => {
      observer.called(script, seconds, outcome, load);
      const { operation = '' } = load;
      const carried = carriedBy(load);
      if (carried.length === 0 && CARRIERS.has(script)) return;
      const endedAt = performance.now();
      const [first] = carried;
      const span = tracer.startSpan(
        `${operation} ${script}`,
        {
          kind: SpanKind.CLIENT,
          startTime: endedAt - seconds * 1000,
          links: carried.map(({ spanContext }) => ({ context: spanContext })),
        },
        first?.context ?? ROOT_CONTEXT,
      );
      for (const request of carried) {
        request.carried(load.size, request === first ? undefined : span.spanContext());
      }
      if (!span.isRecording()) return;
      span.setAttributes({
        'db.system.name': 'redis',
        'db.operation.name': operation,
        'db.stored_procedure.name': script,
        'sluice.batch_size': load.size,
      });
      if (outcome !== 'ok') {
        span.setAttribute('error.type', outcome);
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end(endedAt);
    },
  };
}

function carriedBy({ traces = [] }: CallLoad): RequestSpan[] {
  return traces.filter((request) => request instanceof RequestSpan);
}
