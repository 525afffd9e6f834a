import { createDocument, type oas31, type ZodOpenApiPathsObject } from 'zod-openapi';

import { packageVersion } from '../../common/texts.js';
import { SCOPES } from '../../service/request-context.js';
import { MAX_ELEMENTS } from '../../api/bulk-schemas.js';
import { HEADERS, ofDecisions } from './answer-headers.js';
import { type DescribedSettings, errorExamples, responsesByCode } from './operation.js';
import { CHECKS, limitingPaths, MANY } from './limiting-paths.js';
import { DOCUMENTS, HEALTH, INSTANCES, tellingPaths } from './telling-paths.js';

const DESCRIPTION = `Exact limits by key, in fixed or sliding windows or at an even pace, and a fair queue for requests that wait.

The body of an error has a message for people, a code for programs, and the key if the request has one. The examples list the
messages by code. With \`Accept: application/problem+json\`, an error is a problem of RFC 9457.

An unknown path gets a 404 (\`PATH_NOT_FOUND\`, \`PATH_OF_OTHER_PORT\`, \`SLASH_IN_KEY\`), a method that a path does not take gets a 405
(\`METHOD_NOT_ALLOWED\`, \`CHECK_HAS_REQUEST_ID\`).`;

/**
 * The OpenAPI 3.1 document of the service with these settings. It is built from the schemas that validate requests, and
 * from the tables of errors and headers.
 */
export function openApiDocument(settings: DescribedSettings): oas31.OpenAPIObject {
  const hasTokens = settings.AUTH_TOKENS_FILE !== undefined;
  return createDocument({
    openapi: '3.1.1',
    info: {
      title: 'Sluice',
      version: packageVersion(),
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: CHECKS, description: 'Ask for permission, and release it.' },
      { name: MANY, description: `Up to ${MAX_ELEMENTS} checks or releases in one request.` },
      { name: INSTANCES, description: 'The state of keys.' },
      { name: HEALTH, description: 'The state of the replica.' },
      { name: DOCUMENTS, description: 'This document, and a page to read it.' },
    ],
    paths: {
      ...withServers(limitingPaths(settings), settings),
      ...tellingPaths(settings),
    },
    components: {
      headers: HEADERS,
      examples: errorExamples,
      responses: responsesByCode(ofDecisions(settings)),
      ...(hasTokens && {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: `A token of the caller, with some of the scopes ${SCOPES.join(', ')}.`,
          },
        },
      }),
    },
  });
}

/** Names the server of paths that are not on the port of this document. */
function withServers(
  paths: ZodOpenApiPathsObject,
  { PORT, ADMIN_PORT, TLS_CERT_FILE }: DescribedSettings,
): ZodOpenApiPathsObject {
  if (ADMIN_PORT === undefined) return paths;
  const server = {
    url: `${TLS_CERT_FILE === undefined ? 'http' : 'https'}://{host}:{port}`,
    description:
      'PORT of the service. A page on ADMIN_PORT can not send requests to it: copy the command that the page shows.',
    variables: { host: { default: 'localhost' }, port: { default: String(PORT) } },
  };
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [path, { servers: [server], ...item }]),
  );
}
