import { randomUUID } from 'node:crypto';

import { Validator } from '@seriousme/openapi-schema-validator';
import type { oas31 } from 'zod-openapi';

import { querySchema } from '../../../src/http/intake/parameters.js';
import { ERRORS } from '../../../src/service/errors.js';
import { send } from '../../support/http-client.js';
import { bearer } from '../../support/tokens.js';
import { type FilesRead, useApps } from '../../support/use-apps.js';

const start = useApps();

type Document = oas31.OpenAPIObject;
type Environment = Readonly<Record<string, string>>;

const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options', 'trace'] as const;

/** The document of a service with these settings. */
async function documentWith(environment: Environment = {}, files?: FilesRead): Promise<Document> {
  const app = await start(environment, files);
  const url = environment.ADMIN_PORT === undefined ? app.url : app.adminUrl;
  const { status, headers, json } = await send(url, 'GET', '/openapi.json');
  expect([status, headers['content-type']]).toEqual([200, 'application/json']);
  return json() as Document;
}

const CALLER = {
  name: 'all',
  token: 'token-for-everything',
  scopes: ['check', 'release', 'debug'],
};
const withTokens = (): Promise<Document> => documentWith({}, { tokens: [CALLER] });

function operationsOf({ paths = {} }: Document) {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation ? [{ path, method: method.toUpperCase(), operation }] : [];
    }),
  );
}

/** A target for a path of the document. */
function targetOf(path: string): string {
  return path
    .replace('{file}', 'start.js')
    .replace('{requestId}', randomUUID())
    .replace('{key}', 'k');
}

function responseOf({ components }: Document, response: object): oas31.ResponseObject {
  if (!('$ref' in response)) return response as oas31.ResponseObject;
  const name = (response.$ref as string).split('/').at(-1)!;
  return components!.responses![name] as oas31.ResponseObject;
}

/** The names of the headers of a check's answer with this status. */
function headersOfCheck(document: Document, status: '200' | '429'): string[] {
  const { responses } = document.paths!['/rate/{key}']!.post!;
  return Object.keys(responseOf(document, responses![status] as object).headers!);
}

describe('the document', () => {
  test.each([
    ['as it is by default', () => documentWith()],
    ['with tokens', withTokens],
    ['with an admin port', () => documentWith({ ADMIN_PORT: '0' })],
    [
      'without headers and debug endpoints',
      () => documentWith({ RATE_LIMIT_HEADERS: 'off', DEBUG_ENDPOINTS: 'false' }),
    ],
  ])('is valid OpenAPI 3.1, %s', async (_how, get) => {
    const document = await get();
    const validator = new Validator();

    expect(await validator.validate({ ...document })).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  test('names every error of the table, with its message', async () => {
    const document = await withTokens();
    const named = [document, await documentWith()].flatMap((each) =>
      operationsOf(each).flatMap(({ operation }) =>
        Object.values(operation.responses as Record<string, object>).flatMap((response) => {
          const { content = {} } = responseOf(each, response);
          return Object.values(content).flatMap(({ examples = {} }) => Object.keys(examples));
        }),
      ),
    );
    // Errors of no operation: they answer unknown methods and paths.
    const all = new Set([...named, 'METHOD_NOT_ALLOWED', 'PATH_OF_OTHER_PORT', 'SLASH_IN_KEY']);

    expect([...all].sort()).toEqual(Object.keys(ERRORS).sort());
    for (const [code, { message }] of Object.entries(ERRORS)) {
      expect(JSON.stringify(document.components!.examples![code])).toContain(
        JSON.stringify(message),
      );
    }
  });

  test('has the paths of the service, each with its methods', async () => {
    const app = await start();
    const { json } = await send(app.url, 'GET', '/openapi.json');
    const operations = operationsOf(json() as Document);
    const paths = [...new Set(operations.map(({ path }) => path))];
    for (const path of paths) {
      const { status, headers } = await send(app.url, 'PURGE', targetOf(path));
      const methods = operations.filter((each) => each.path === path).map(({ method }) => method);

      expect([path, status, headers.allow?.split(', ').sort()]).toEqual([
        path,
        405,
        methods.sort(),
      ]);
    }

    expect(paths.length).toBeGreaterThan(10);
  });

  test('has the parameters of checks with the bounds that are enforced', async () => {
    const { paths } = await documentWith();
    const parameters = paths!['/rate/{key}']!.post!.parameters as oas31.ParameterObject[];
    const inQuery = parameters.filter((each) => each.in === 'query');

    expect(inQuery.map(({ name }) => name)).toEqual(Object.keys(querySchema.shape));
    expect(inQuery.slice(0, 5)).toMatchObject([
      { name: 'requestId', schema: { type: 'string', format: 'uuid' } },
      { name: 'canWait', schema: { type: 'boolean' } },
      { name: 'maxRequests', schema: { type: 'integer', minimum: 1, maximum: 1_000_000_000 } },
      { name: 'defaultMaxRequests' },
      { name: 'maxRequestsInQueue', schema: { type: 'integer', minimum: 0, maximum: 100_000 } },
    ]);
    for (const { required = false, description } of inQuery) {
      expect([required, description]).toEqual([false, expect.stringMatching(/\.$/)]);
    }
  });

  test.each([
    ['draft', ['RateLimit-Policy', 'RateLimit']],
    ['legacy', ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']],
    ['off', []],
  ])('has the headers of the form %s', async (form, names) => {
    const document = await documentWith({ RATE_LIMIT_HEADERS: form });

    for (const status of ['200', '429'] as const) {
      const headers = headersOfCheck(document, status);
      expect(headers.filter((name) => name.includes('RateLimit'))).toEqual(names);
    }
  });

  test('says which scope the token of each operation needs, if there are tokens', async () => {
    const [open, guarded] = [await documentWith(), await withTokens()];
    const scopes = operationsOf(guarded).map(({ path, method, operation }) => [
      `${method} ${path}`,
      operation.security?.[0]?.bearer?.[0],
    ]);

    expect(Object.fromEntries(scopes)).toMatchObject({
      'POST /rate/{key}': 'check',
      'DELETE /rate': 'release',
      'GET /debug/{key}': 'debug',
      'GET /metrics': 'debug',
      'GET /healthz': undefined,
      'GET /openapi.json': undefined,
    });
    expect(operationsOf(open).some(({ operation }) => operation.security)).toBe(false);
    expect(open.components).not.toHaveProperty('securitySchemes');
  });
});

describe('with an admin port', () => {
  test('the document and the page are on that port, and say that checks are on the other', async () => {
    const app = await start({ ADMIN_PORT: '0' });
    for (const path of ['/openapi.json', '/docs', '/docs/start.js']) {
      expect((await send(app.url, 'GET', path)).status).toBe(404);
      expect((await send(app.adminUrl, 'GET', path)).status).toBe(200);
    }
    const { json } = await send(app.adminUrl, 'GET', '/openapi.json');
    const { paths = {}, servers } = json() as Document;
    const elsewhere = Object.keys(paths).filter((path) => paths[path]!.servers);

    expect(servers).toEqual([{ url: '/' }]);
    expect(elsewhere.sort()).toEqual([
      '/rate',
      '/rate/{key}',
      '/rate/{key}/holders/{handle}',
      '/rate/{key}/{requestId}',
    ]);
  });
});

describe('if there are tokens', () => {
  test('the document and the page need no token, and reveal nothing about callers', async () => {
    const app = await start({}, { tokens: [CALLER] });
    const targets = ['/openapi.json', '/docs', '/docs/start.js', '/docs/swagger-ui.css'];
    const without = await Promise.all(targets.map((target) => send(app.url, 'GET', target)));
    const headers = bearer(CALLER);
    const withOne = await send(app.url, 'GET', '/openapi.json', headers);

    expect(without.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(without[0]!.text).toBe(withOne.text);
    expect(without[0]!.text).not.toContain(CALLER.token);
  });
});

describe('the page', () => {
  test('runs only scripts of the service, and connects to no other host', async () => {
    const app = await start();
    const { headers, text } = await send(app.url, 'GET', '/docs');
    const loaded = [...text.matchAll(/(?:src|href)="(?!data:)([^"]+)"/g)].map(([, path]) => path!);
    const files = await Promise.all(loaded.map((path) => send(app.url, 'GET', `/${path}`)));
    const policy = String(headers['content-security-policy']).split('; ');

    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(policy).toEqual(
      expect.arrayContaining(["default-src 'none'", "script-src 'self'", "style-src 'self'"]),
    );
    expect(policy.join()).not.toMatch(/unsafe|\*|http/);
    expect(loaded).toHaveLength(4);
    expect(files.map(({ status, headers: { 'content-type': type } }) => [status, type])).toEqual([
      [200, 'text/css; charset=utf-8'],
      [200, 'text/css; charset=utf-8'],
      [200, 'text/javascript; charset=utf-8'],
      [200, 'text/javascript; charset=utf-8'],
    ]);
    expect(text).not.toMatch(/<script>|style=| on\w+=/);
  });

  test('has its files complete, and no others', async () => {
    const app = await start();
    const target = '/docs/swagger-ui-bundle.js';
    const [file, head] = await Promise.all([
      send(app.url, 'GET', target),
      send(app.url, 'HEAD', target),
    ]);
    const others = [
      'swagger-ui.js.map',
      'index.html',
      'package.json',
      '..%2Fpackage.json',
      'toString',
    ];
    const statuses = await Promise.all(
      others.map(async (name) => (await send(app.url, 'GET', `/docs/${name}`)).status),
    );

    expect(file.text).toContain('SwaggerUIBundle');
    expect(Number(file.headers['content-length'])).toBe(Buffer.byteLength(file.text));
    expect([head.headers['content-length'], head.text]).toEqual([
      file.headers['content-length'],
      '',
    ]);
    expect(statuses).toEqual([404, 404, 404, 404, 404]);
  });
});
