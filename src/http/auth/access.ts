import type { RequestHandler } from 'express';

export const SCOPES = ['check', 'release', 'debug'] as const;

/** A permission that a token can give. */
export type Scope = (typeof SCOPES)[number];

/** The permissions of callers. */
export interface Access {
  /** @returns a handler that passes requests with `scope` on to `handler`, and answers all others */
  guard(scope: Scope, handler: RequestHandler): RequestHandler;
}

/** Without tokens everybody has every scope. */
export const openAccess: Access = { guard: (_scope, handler) => handler };
