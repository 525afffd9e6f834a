import { readdirSync } from 'node:fs';

import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/** It is loaded only where requests are traced: by `import()`, which this rule does not see. */
const OPENTELEMETRY = [
  { group: ['@opentelemetry/**'], message: 'only src/tracing/sdk knows OpenTelemetry' },
  {
    group: ['**/tracing/sdk/**', './sdk/**'],
    message: 'OpenTelemetry is loaded only where requests are traced',
    allowTypeImports: true,
  },
];
/** Loaded by `import()` as well. */
const TIME_ZONES = {
  group: ['**/zoned-calendar.js'],
  message: 'the library of time zones is loaded only if there is a calendar',
};

/** Forbids imports, so that dependencies point one way. Of two calls for one file the last holds. */
function mayNotImport(folder, forbidden, reason) {
  return {
    files: [`src/${folder}/**/*.ts`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { group: forbidden, message: reason, allowTypeImports: false },
            ...(folder === 'tracing/sdk' ? [] : OPENTELEMETRY),
            TIME_ZONES,
          ],
        },
      ],
    },
  };
}

/** The ways in, and what puts the parts together. */
const WAYS_IN = ['**/http/**', '**/grpc/**'];
const UPPER_PARTS = ['**/app/**', '**/main.js', '**/api/**', ...WAYS_IN];
/** What knows the limiter and nothing above it. */
const ABOVE_LIMITER = ['**/service/**', '**/net/**', ...UPPER_PARTS];
const NOT_FOR_WAYS_IN = ['**/redis/**', '**/app/**', '**/main.js'];
const ABOVE_REDIS = ['**/metrics/**', ...ABOVE_LIMITER];
/** The folders of redis. Each knows those before it; the files beside them put them together. */
const OF_REDIS = ['shared', 'connections', 'availability', 'scripts', 'checks', 'waiting'];
const ABOVE_HTTP = [...NOT_FOR_WAYS_IN, '**/grpc/**', '@grpc/**'];

/** The names of the algorithms, each of which has a file. */
const KINDS_OF_LIMITS = readdirSync(new URL('src/limiter/kinds', import.meta.url))
  .filter((file) => !['kind.ts', 'kinds.ts'].includes(file))
  .map((file) => file.replace('.ts', '').replaceAll('-', '_'));

export default tseslint.config(
  { ignores: ['**/dist/', '**/node_modules/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: {
        project: 'test/tsconfig.json',
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreVoidReturningFunctions: true },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-console': 'error',
      'max-lines': ['error', { max: 350, skipBlankLines: true, skipComments: true }],
    },
  },
  mayNotImport(
    'common',
    [
      ...['**/config/**', '**/rules/**', '**/limiter/**', '**/redis/**', '**/metrics/**'],
      ...['**/readiness/**', '**/tracing/**', ...ABOVE_LIMITER],
    ],
    'what all parts use knows none of them',
  ),
  mayNotImport(
    'config',
    ['**/redis/**', '**/metrics/**', '**/readiness/**', ...ABOVE_LIMITER],
    'settings know no part but the bounds of the limiter',
  ),
  mayNotImport(
    'rules',
    ['**/redis/**', '**/metrics/**', '**/readiness/**', ...ABOVE_LIMITER],
    'rules know limits and files only',
  ),
  mayNotImport(
    'import',
    [...NOT_FOR_WAYS_IN, '**/service/**', '**/http/**', '**/metrics/**', '@grpc/**', 'express'],
    'an import knows rules, and how keys are made',
  ),
  mayNotImport(
    'limiter',
    ['**/redis/**', ...ABOVE_LIMITER],
    'the limiter knows neither its callers nor Redis',
  ),
  mayNotImport(
    'service',
    ['**/redis/**', '**/net/**', ...UPPER_PARTS, 'express', '@grpc/**', 'node:http', 'node:http2'],
    'the service knows neither HTTP nor gRPC',
  ),
  mayNotImport(
    'net',
    ['**/limiter/**', '**/redis/**', '**/service/**', ...UPPER_PARTS, 'express', '@grpc/**'],
    'ports know neither what they serve nor how',
  ),
  mayNotImport(
    'api',
    ['**/redis/**', '**/app/**', '**/main.js', ...WAYS_IN],
    'the types of the HTTP API do not know who serves it',
  ),
  mayNotImport('http', ABOVE_HTTP, 'http is a way in to the service'),
  // A request's way is server, routes, auth and intake, replies; each knows those after it.
  mayNotImport('http/routes', [...ABOVE_HTTP, '**/server/**'], 'routes know no server'),
  mayNotImport(
    'http/openapi',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**'],
    'the document knows what requests and answers have, and nobody who serves them',
  ),
  mayNotImport(
    'http/auth',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**', '**/intake/**'],
    'auth knows replies only',
  ),
  mayNotImport(
    'http/intake',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**', '**/auth/**'],
    'intake knows replies only',
  ),
  mayNotImport(
    'http/replies',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**', '**/auth/**', '**/intake/**'],
    'replies know nothing else of http',
  ),
  mayNotImport(
    'grpc',
    [...NOT_FOR_WAYS_IN, '**/http/**', 'express'],
    'gRPC is a way in to the service, beside http',
  ),
  mayNotImport('redis', ABOVE_REDIS, 'redis knows the limiter only'),
  ...OF_REDIS.map((folder, i) =>
    mayNotImport(
      `redis/${folder}`,
      [...ABOVE_REDIS, '../*.js', ...OF_REDIS.slice(i + 1).map((later) => `**/${later}/**`)],
      `redis/${folder} knows only ${OF_REDIS.slice(0, i).join(', ') || 'the limiter'}`,
    ),
  ),
  mayNotImport('metrics', ABOVE_LIMITER, 'metrics know what they measure'),
  mayNotImport(
    'tracing',
    ['**/metrics/**', '**/readiness/**', ...ABOVE_LIMITER],
    'tracing knows what it follows',
  ),
  mayNotImport(
    'tracing/sdk',
    ['**/metrics/**', '**/readiness/**', ...ABOVE_LIMITER],
    'tracing knows what it follows',
  ),
  mayNotImport('readiness', ['**/redis/**', ...ABOVE_LIMITER], 'readiness asks the limiter'),
  {
    files: ['clients/node/src/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?!node:|\\./|\\.\\./(api|decision|errors|options)\\.js$)',
              message: 'users of the client load nothing of the service, and no package',
            },
          ],
        },
      ],
    },
  },
  {
    files: ['src/**/*.ts', 'ui/**/*.js', 'clients/node/src/**/*.ts'],
    ignores: ['src/limiter/kinds/**', 'src/limiter/memory/limits/**'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...['Literal[value=', 'Identifier[name='].map((selector) => ({
          selector: `${selector}/^(?:${KINDS_OF_LIMITS.join('|')})$/]`,
          message: 'ask for a fact of its kind: kindOf in src/limiter/kinds/kinds.ts',
        })),
      ],
    },
  },
  { files: ['src/main.ts'], rules: { 'no-console': 'off' } },
  {
    files: ['**/*.js', '**/*.mjs'],
    languageOptions: {
      globals: {
        console: 'readonly',
        process: 'readonly',
        setTimeout: 'readonly',
        URL: 'readonly',
        fetch: 'readonly',
        AbortController: 'readonly',
        AbortSignal: 'readonly',
        clearTimeout: 'readonly',
        performance: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
      },
    },
  },
  {
    // The dashboard's page runs in browsers.
    files: ['ui/**/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          ...['document', 'location', 'navigator', 'addEventListener', 'AbortController'],
          ...['FormData', 'URLSearchParams', 'ResizeObserver', 'getComputedStyle'],
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      'max-lines': 'off',
      'no-restricted-imports': [
        'error',
        { name: 'fast-check', message: 'import test/support/properties.js, which sets the seed' },
      ],
      'no-restricted-syntax': [
        'error',
        ...[
          'MemberExpression[property.name="only"]',
          'CallExpression[callee.name=/^(fit|fdescribe)$/]',
        ].map((selector) => ({
          selector,
          message: 'a focused test keeps the others from running',
        })),
      ],
    },
  },
);
