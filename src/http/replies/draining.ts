import type { Application } from 'express';

/** Has every answer from now on ask its client to send the next request on another connection. */
export function startDraining(app: Application): void {
  app.locals.isDraining = true;
}

export function isDraining(app: Application): boolean {
  return app.locals.isDraining === true;
}
