import type { RequestHandler, Response } from 'express';

export const SCOPES = ['check', 'release', 'debug', 'configure'] as const;

/** A permission that a token can give. */
export type Scope = (typeof SCOPES)[number];

/** The permissions of callers. A response stands for the caller of its request, which a guard has let pass. */
export interface Access {
  /** @returns a handler that passes requests with `scope` on to `handler`, and answers all others */
  guard(scope: Scope, handler: RequestHandler): RequestHandler;
  /** As {@link guard} for the scope `debug`, also while the tokens are gone. */
  guardMetrics(handler: RequestHandler): RequestHandler;
  /** @throws HttpError SCOPE_MISSING where the caller lacks one more scope */
  demand(scope: Scope, response: Response): void;
  /** @throws HttpError KEY_NOT_ALLOWED where the key is not for the caller */
  demandKey(key: string, response: Response): void;
  /** Whether the caller may see a key. */
  mayUse(key: string, response: Response): boolean;
  /**
   * Has `work` wait in a place of the caller's.
   * @param work is told where the caller has no place left
   * @throws HttpError TOO_MANY_WAITERS_OF_CALLER where it would have to wait then
   */
  withPlace<T>(response: Response, work: (noPlace: boolean) => Promise<T>): Promise<T>;
}

/** Without tokens everybody has every scope. */
export const openAccess: Access = {
  guard: (_scope, handler) => handler,
  guardMetrics: (handler) => handler,
  demand: () => undefined,
  demandKey: () => undefined,
  mayUse: () => true,
  withPlace: (_response, work) => work(false),
};
