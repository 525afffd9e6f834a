import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { z } from 'zod';

import { FOR_BROWSERS, headersOf } from './answer-headers.js';
import { instanceDetail, listing, missingInstance } from '../../api/debug-body.js';
import { PAGE_FILE_NAMES } from './page.js';
import { type DescribedSettings, operationMaker, read } from './operation.js';
import { ofInstance, ofRequest } from './parameters.js';

export const INSTANCES = 'Instances';
export const HEALTH = 'Health';
export const DOCUMENTS = 'Documents';

const OF_PAGE = [...FOR_BROWSERS, 'ETag'] as const;
const HTML = { 'text/html': { schema: { type: 'string' } } } as const;
const PLAIN_TEXT = { 'text/plain': { schema: { type: 'string' } } } as const;

/** The paths that show keys and counts. */
export function debugPaths(settings: DescribedSettings): ZodOpenApiPathsObject {
  const operation = operationMaker(settings);
  const debug = {
    '/debug': read(
      operation({
        operationId: 'listInstances',
        tags: [INSTANCES],
        summary: 'The state of all keys',
        description: 'With tokens, only keys that the caller may use.',
        scope: 'debug',
        answer: {
          description: 'The instances, as of now.',
          headers: FOR_BROWSERS,
          content: { 'application/json': { schema: listing } },
        },
        errors: ['STORE_UNAVAILABLE', 'LISTING_FORBIDDEN'],
      }),
    ),
    '/debug/{key}': read(
      operation({
        operationId: 'showInstance',
        tags: [INSTANCES],
        summary: 'The state of one key',
        scope: 'debug',
        requestParams: ofInstance,
        answer: {
          description: 'The instance as of now, or `Found: false`.',
          headers: FOR_BROWSERS,
          content: { 'application/json': { schema: z.union([instanceDetail, missingInstance]) } },
        },
        errors: ['STORE_UNAVAILABLE'],
      }),
    ),
    '/': read(
      operation({
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
    ),
    '/ui': read(
      operation({
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
    ),
  };
  const metrics = {
    '/metrics': read(
      operation({
        operationId: 'metrics',
        tags: [HEALTH],
        summary: 'Metrics for Prometheus',
        scope: 'debug',
        isForAllPages: true,
        answer: { description: 'The metrics.', headers: FOR_BROWSERS, content: PLAIN_TEXT },
      }),
    ),
  };
  return settings.DEBUG_ENDPOINTS ? { ...debug, ...metrics } : metrics;
}

/** The paths that show the state of the replica. */
export function healthPaths(settings: DescribedSettings): ZodOpenApiPathsObject {
  const operation = operationMaker(settings);
  return {
    '/healthz': read(
      operation({
        operationId: 'isAlive',
        tags: [HEALTH],
        summary: 'Whether the process lives, even without Redis',
        answer: {
          description: 'The process lives.',
          headers: FOR_BROWSERS,
          content: { 'text/plain': { schema: { type: 'string', const: 'OK' } } },
        },
      }),
    ),
    '/readyz': read(
      operation({
        operationId: 'isReady',
        tags: [HEALTH],
        summary: 'Whether requests should come to this replica',
        answer: {
          description: '`OK`, and warnings on further lines, if there are any.',
          headers: FOR_BROWSERS,
          content: PLAIN_TEXT,
        },
        errors: ['NOT_READY'],
      }),
    ),
  };
}

/** The paths of this document. */
export function documentPaths(settings: DescribedSettings): ZodOpenApiPathsObject {
  const operation = operationMaker(settings);
  return {
    '/openapi.json': read(
      operation({
        operationId: 'openApi',
        tags: [DOCUMENTS],
        summary: 'This document',
        answer: {
          description: 'A document of OpenAPI 3.1.',
          headers: FOR_BROWSERS,
          content: { 'application/json': { schema: z.looseObject({ openapi: z.string() }) } },
        },
      }),
    ),
    '/docs': read(
      operation({
        operationId: 'page',
        tags: [DOCUMENTS],
        summary: 'A page to read this document, and to try it',
        answer: {
          description: 'The page.',
          headers: FOR_BROWSERS,
          content: HTML,
        },
      }),
    ),
    '/docs/{file}': read(
      operation({
        operationId: 'pageFile',
        tags: [DOCUMENTS],
        summary: 'A file that the page loads',
        requestParams: { ...ofRequest, path: z.object({ file: z.enum(PAGE_FILE_NAMES) }) },
        answer: {
          description: 'A script or a style sheet.',
          headers: FOR_BROWSERS,
          content: {
            'text/javascript': { schema: { type: 'string' } },
            'text/css': { schema: { type: 'string' } },
          },
        },
        errors: ['PATH_NOT_FOUND'],
      }),
    ),
  };
}
