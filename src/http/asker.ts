import type { IncomingHttpHeaders } from 'node:http';

/** Whoever asks for something: an Express response stands for its request, a call by gRPC for itself. */
export interface Asker {
  readonly locals: Express.Locals;
  readonly req: { readonly headers: IncomingHttpHeaders };
}
