import type { RequestHandler } from 'express';

export const SCOPES = ['check', 'release', 'debug'] as const;

/** What a token may be good for. */
export type Scope = (typeof SCOPES)[number];

/** Who may do what. */
export interface Access {
  /** @returns a handler that leaves to `handler` those who may do what `scope` says, and answers all others */
  guard(scope: Scope, handler: RequestHandler): RequestHandler;
}

/** Everybody may do everything: no tokens are set. */
export const openAccess: Access = { guard: (_scope, handler) => handler };
