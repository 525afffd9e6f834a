import type { Application } from 'express';

/**
 * From now on every answer asks its client to use another connection, and so another replica, next.
 */
export function startDraining(app: Application): void {
  app.locals.isDraining = true;
}

export function isDraining(app: Application): boolean {
  return app.locals.isDraining === true;
}
