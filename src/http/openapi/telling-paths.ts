import type { ZodOpenApiPathItemObject, ZodOpenApiPathsObject } from 'zod-openapi';
import { z } from 'zod';

import { FOR_BROWSERS, headersOf } from './answer-headers.js';
import { instanceDetail, listing, missingInstance } from '../../api/debug-body.js';
import { PAGE_FILE_NAMES } from './page.js';
import { type Described, type DescribedSettings, operationMaker } from './operation.js';
import { ofInstance, ofRequest } from './parameters.js';

export const INSTANCES = 'Instances';
export const HEALTH = 'Health';
export const DOCUMENTS = 'Documents';

const OF_PAGE = [...FOR_BROWSERS, 'ETag'] as const;
const json = (schema: z.ZodType) => ({ 'application/json': { schema } });
const HTML = { 'text/html': { schema: { type: 'string' } } } as const;
const PLAIN_TEXT = { 'text/plain': { schema: { type: 'string' } } } as const;

/** The paths that are only read: what shows keys, counts, the state of the replica, and this document. */
export function tellingPaths(settings: DescribedSettings): ZodOpenApiPathsObject {
  const operation = operationMaker(settings);
  /** HEAD has the answers of GET, without their bodies. */
  const read = (described: Described): ZodOpenApiPathItemObject => {
    const get = operation(described);
    const operationId = `${described.operationId}Head`;
    return { get, head: { ...get, operationId, summary: `${described.summary} (headers only)` } };
  };
  /** Describes an operation whose answer a browser may show. */
  const shown = (
    description: string,
    content: Described['answer']['content'],
  ): Described['answer'] => ({ description, headers: FOR_BROWSERS, content });
  const debug = {
    '/debug': read({
      operationId: 'listInstances',
      tags: [INSTANCES],
      summary: 'The state of all keys',
      description: 'With tokens, only keys that the caller may use.',
      scope: 'debug',
      answer: shown('The instances, as of now.', json(listing)),
      errors: ['STORE_UNAVAILABLE', 'LISTING_FORBIDDEN'],
    }),
    '/debug/{key}': read({
      operationId: 'showInstance',
      tags: [INSTANCES],
      summary: 'The state of one key',
      scope: 'debug',
      requestParams: ofInstance,
      answer: shown(
        'The instance as of now, or `Found: false`.',
        json(z.union([instanceDetail, missingInstance])),
      ),
      errors: ['STORE_UNAVAILABLE'],
    }),
    '/': read({
      operationId: 'start',
      tags: [INSTANCES],
      summary: 'Leads to the dashboard',
      answer: {
        status: 303,
        description: 'The dashboard is at `/ui`.',
        headers: [...FOR_BROWSERS, 'Location'],
        content: PLAIN_TEXT,
      },
    }),
    '/ui': read({
      operationId: 'dashboard',
      tags: [INSTANCES],
      summary: 'The dashboard, for a browser',
      description: 'Paths below `/ui` are internal and may change.',
      answer: { description: 'The page.', headers: OF_PAGE, content: HTML },
      more: {
        304: {
          description: 'The page that the browser has cached is current.',
          headers: headersOf(OF_PAGE),
        },
      },
    }),
  };
  return {
    ...(settings.DEBUG_ENDPOINTS && debug),
    '/metrics': read({
      operationId: 'metrics',
      tags: [HEALTH],
      summary: 'Metrics for Prometheus',
      scope: 'metrics',
      answer: shown('The metrics.', PLAIN_TEXT),
    }),
    '/healthz': read({
      operationId: 'isAlive',
      tags: [HEALTH],
      summary: 'Whether the process lives, even without Redis',
      answer: shown('The process lives.', {
        'text/plain': { schema: { type: 'string', const: 'OK' } },
      }),
    }),
    '/readyz': read({
      operationId: 'isReady',
      tags: [HEALTH],
      summary: 'Whether requests should come to this replica',
      answer: shown('`OK`, and warnings on further lines, if there are any.', PLAIN_TEXT),
      errors: ['NOT_READY'],
    }),
    '/openapi.json': read({
      operationId: 'openApi',
      tags: [DOCUMENTS],
      summary: 'This document',
      answer: shown('A document of OpenAPI 3.1.', json(z.looseObject({ openapi: z.string() }))),
    }),
    '/docs': read({
      operationId: 'page',
      tags: [DOCUMENTS],
      summary: 'A page to read this document, and to try it',
      answer: shown('The page.', HTML),
    }),
    '/docs/{file}': read({
      operationId: 'pageFile',
      tags: [DOCUMENTS],
      summary: 'A file that the page loads',
      requestParams: { ...ofRequest, path: z.object({ file: z.enum(PAGE_FILE_NAMES) }) },
      answer: shown('A script or a style sheet.', {
        'text/javascript': { schema: { type: 'string' } },
        'text/css': { schema: { type: 'string' } },
      }),
      errors: ['PATH_NOT_FOUND'],
    }),
  };
}
