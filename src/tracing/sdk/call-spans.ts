import { ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api';

import type { CallLoad, StoreObserver } from '../../redis/store-observer.js';
import { RequestSpan } from './request-spans.js';

/** The scripts that carry requests, whose callers and sampler have said whether they are traced. */
const CARRIERS: ReadonlySet<string> = new Set(['check', 'release']);

/**
 * Makes a span of each script call when it has ended, and tells `observer` of all.
 *
 * A call that carries checks has links to all of theirs that are recorded. It is below the first, so that it is
 * recorded where that is, and the others have links to it. What the replica does by itself has traces of its own.
 */
export function observeCalls(observer: StoreObserver, tracer: Tracer): StoreObserver {
  return {
    called: (script, seconds, outcome, load) => {
      observer.called(script, seconds, outcome, load);
      const carried = carriedBy(load);
      if (carried.length === 0 && CARRIERS.has(script)) return;
      const endedAt = performance.now();
      const [first] = carried;
      const span = tracer.startSpan(
        `EVALSHA ${script}`,
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
        'db.operation.name': 'EVALSHA',
        'db.stored_procedure.name': script,
        'sluice.batch_size': load.size,
      });
      if (outcome !== 'ok') {
        span.setAttribute('error.type', outcome);
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end(endedAt);
    },
    batched: (checks) => {
      observer.batched(checks);
    },
    breakersOpen: (count) => {
      observer.breakersOpen(count);
    },
    catchingUp: (what, undone) => {
      observer.catchingUp(what, undone);
    },
  };
}

function carriedBy({ traces = [] }: CallLoad): RequestSpan[] {
  return traces.filter((request) => request instanceof RequestSpan);
}
