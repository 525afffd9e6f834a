import type { Request, RequestHandler, Response } from 'express';

import type { Access } from '../../auth/access.js';
import { parseReleaseElement } from '../../intake/elements.js';
import { ERRORS } from '../../replies/errors.js';
import type { Release } from '../../deciding/release.js';
import { answerMany, BulkCall, type BulkParts } from './bulk-call.js';

interface ReleaseParts extends BulkParts {
  readonly release: Release;
  readonly access: Pick<Access, 'demandKey'>;
}

const { status, message } = ERRORS.REQUEST_NOT_FOUND;
const RELEASED = '{"status":200}';
const NOT_FOUND = `{"status":${status},"error":"${message}"}`;

/** `DELETE /rate` */
export function releaseMany(parts: ReleaseParts): RequestHandler {
  return answerMany(parts, (...call) => new ReleaseCall(parts, ...call));
}

class ReleaseCall extends BulkCall {
  /** Nobody else would release what the client has asked to. */
  protected readonly goesOnAlone = true;

  constructor(
    private readonly releaseParts: ReleaseParts,
    elements: readonly unknown[],
    request: Request,
    response: Response,
  ) {
    super(releaseParts, elements, request, response);
  }

  protected async deal(element: unknown, place: number): Promise<void> {
    const { key, request_id: requestId } = parseReleaseElement(element);
    const { access, release } = this.releaseParts;
    access.demandKey(key, this.response);
    const isReleased = await release(key, requestId, this.response);
    if (!isReleased) this.noteRefusal('REQUEST_NOT_FOUND');
    this.results[place] = isReleased ? RELEASED : NOT_FOUND;
  }

  protected giveBack(): void {
    // What was released stays released.
  }
}
