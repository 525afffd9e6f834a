import type { RequestHandler } from 'express';

import type { Asker } from '../asker.js';
import { foreignPageRefusal } from './foreign-pages.js';

export const SCOPES = ['check', 'release', 'debug', 'configure'] as const;

/** A permission that a token can give. */
export type Scope = (typeof SCOPES)[number];

/** The permissions of callers. All but the first two ask of a caller whom `enter` or a guard has let pass. */
export interface Access {
  /**
   * Lets an asker with `scope` pass.
   * @throws HttpError TOKEN_REQUIRED, TOKEN_UNKNOWN or SCOPE_MISSING
   */
  enter(scope: Scope, from: Asker): void;
  /** @returns a handler that passes requests with `scope` on to `handler`, and answers all others */
  guard(scope: Scope, handler: RequestHandler): RequestHandler;
  /** As {@link guard} for the scope `debug`, also while the tokens are gone. */
  guardMetrics(handler: RequestHandler): RequestHandler;
  /** @throws HttpError SCOPE_MISSING where the caller lacks one more scope */
  demand(scope: Scope, from: Asker): void;
  /** @throws HttpError KEY_NOT_ALLOWED where the key is not for the caller */
  demandKey(key: string, from: Asker): void;
  /** Whether the caller may see a key. */
  mayUse(key: string, from: Asker): boolean;
  /**
   * Has `work` wait in a place of the caller's.
   * @param work is told where the caller has no place left
   * @throws HttpError TOO_MANY_WAITERS_OF_CALLER where it would have to wait then
   */
  withPlace<T>(from: Asker, work: (noPlace: boolean) => Promise<T>): Promise<T>;
}

/**
 * Without tokens everybody has every scope, but for pages of other origins: they have no token, but the address of a
 * browser that reaches the service. The metrics may be asked for: they change nothing, and no other page can read them.
 * @param allowedOrigins origins whose pages may ask as well
 */
export function openAccess(allowedOrigins: readonly string[] = []): Access {
  const refuseForeignPages = foreignPageRefusal(allowedOrigins);
  return {
    enter: () => undefined,
    guard: (_scope, handler) => (request, response, next) => {
      refuseForeignPages(request.headers);
      return handler(request, response, next);
    },
    guardMetrics: (handler) => handler,
    demand: () => undefined,
    demandKey: () => undefined,
    mayUse: () => true,
    withPlace: (_from, work) => work(false),
  };
}
