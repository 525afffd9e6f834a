import { type Metadata, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';

import {
  correlationIdOf,
  type RequestContext,
  type RequestHeaders,
} from '../service/request-context.js';
import type { Access } from '../service/callers/access.js';
import type { CallLog } from './call-log.js';

interface CallHeadsParts {
  /** The path of the calls that need a token, if there are tokens. */
  readonly callPath: string;
  readonly access: Pick<Access, 'enter'>;
  readonly log: Pick<CallLog, 'failed'>;
}

/** Rejects calls without the right token before their messages are read, and keeps the contexts of the others. */
export class CallHeads {
  readonly #heads = new WeakMap<Metadata, RequestContext>();

  constructor(private readonly parts: CallHeadsParts) {}

  /** An option of the server. */
  readonly interceptor: ServerInterceptor = ({ path }, call) => {
    if (path !== this.parts.callPath) return new ServerInterceptingCall(call);
    const { access, log } = this.parts;
    return new ServerInterceptingCall(call, {
      start: (next) => {
        next({
          onReceiveMetadata: (metadata, pass) => {
            const head = headOf(metadata);
            try {
              access.enter('check', head);
            } catch (error) {
              call.sendStatus(log.failed(error, head));
              return;
            }
            this.#heads.set(metadata, head);
            pass(metadata);
          },
        });
      },
    });
  };

  /** The context of a call that was let in. */
  of(metadata: Metadata): RequestContext {
    const head = this.#heads.get(metadata);
    if (!head) throw new Error('the call was not let in');
    return head;
  }
}

function headOf(metadata: Metadata): RequestContext {
  const headers: RequestHeaders = metadata.getMap();
  return { correlationId: correlationIdOf(headers), startedAt: performance.now(), headers };
}
