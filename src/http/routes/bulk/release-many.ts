import type { RequestHandler } from 'express';

import type { Access } from '../../../service/callers/access.js';
import type { Release } from '../../../service/deciding/traced-decisions.js';
import { ERRORS } from '../../../service/errors.js';
import { parseReleaseElement } from '../../intake/elements.js';
import { httpStatusOf } from '../../replies/error-statuses.js';
import { answerMany, BulkCall, type BulkParts } from './bulk-call.js';

interface ReleaseParts extends BulkParts {
  readonly release: Release;
  readonly access: Pick<Access, 'demandKey'>;
}

const RELEASED = '{"status":200}';
const NOT_FOUND = JSON.stringify({
  status: httpStatusOf('REQUEST_NOT_FOUND'),
  error: ERRORS.REQUEST_NOT_FOUND.message,
  code: 'REQUEST_NOT_FOUND',
});

/** `DELETE /rate` */
export function releaseMany(parts: ReleaseParts): RequestHandler {
  return answerMany('release many', parts, (...call) => new ReleaseCall(parts, ...call));
}

class ReleaseCall extends BulkCall<ReleaseParts> {
  /** A release that the client has asked for is done, since nobody else would do it. */
  protected readonly continuesAfterDisconnect = true;

  protected deal(
    element: unknown,
    index: number,
    onDone: () => void,
    onFailed: (error: unknown) => void,
  ): void {
    const { key, request_id: requestId } = parseReleaseElement(element);
    const { access, release } = this.parts;
    const { context } = this.response.locals;
    access.demandKey(key, context);
    release(key, requestId, context).then((isReleased) => {
      if (!isReleased) this.noteError('REQUEST_NOT_FOUND');
      this.results[index] = isReleased ? RELEASED : NOT_FOUND;
      onDone();
    }, onFailed);
  }

  protected giveBack(): void {
    // Released approvals stay released.
  }
}
