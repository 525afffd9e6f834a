import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/** It is loaded only where requests are traced: by `import()`, which this rule does not see. */
const OPENTELEMETRY = {
  group: ['@opentelemetry/**', '**/tracing/sdk/**', './sdk/**'],
  message: 'only src/tracing/sdk knows OpenTelemetry',
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
            ...(folder === 'tracing/sdk' ? [] : [OPENTELEMETRY]),
          ],
        },
      ],
    },
  };
}

const UPPER_PARTS = ['**/app/**', '**/main.js', '**/client/**', '**/grpc/**'];
const ABOVE_TRACING = ['**/http/**', '**/metrics/**', '**/readiness/**', ...UPPER_PARTS];
const ABOVE_HTTP = ['**/redis/**', ...UPPER_PARTS];

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ['tsconfig.json', 'test/tsconfig.json'],
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
      'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
    },
  },
  mayNotImport(
    'common',
    [
      '**/http/**',
      '**/limiter/**',
      '**/redis/**',
      '**/metrics/**',
      '**/readiness/**',
      ...UPPER_PARTS,
    ],
    'what all parts use knows none of them',
  ),
  mayNotImport(
    'config',
    ['**/http/**', '**/redis/**', '**/metrics/**', '**/readiness/**', ...UPPER_PARTS],
    'settings know no part but the bounds of the limiter',
  ),
  mayNotImport(
    'rules',
    ['**/http/**', '**/redis/**', '**/metrics/**', '**/readiness/**', ...UPPER_PARTS],
    'rules know limits and files only',
  ),
  mayNotImport(
    'limiter',
    ['**/http/**', '**/redis/**', ...UPPER_PARTS],
    'the limiter knows neither HTTP nor Redis',
  ),
  mayNotImport('http', ABOVE_HTTP, 'http knows the limiter only'),
  // A request's way is server, routes, auth and intake, replies; each knows those after it.
  mayNotImport('http/routes', [...ABOVE_HTTP, '**/server/**'], 'routes know no server'),
  mayNotImport(
    'http/openapi',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**'],
    'the document knows what requests and answers have, and nobody who serves them',
  ),
  mayNotImport(
    'http/deciding',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**', '**/intake/**', '**/openapi/**'],
    'what decides knows who asks and how errors are told, for HTTP and gRPC alike',
  ),
  mayNotImport(
    'http/auth',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**', '**/intake/**', '**/deciding/**'],
    'auth knows replies only',
  ),
  mayNotImport(
    'http/intake',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**', '**/auth/**', '**/deciding/**'],
    'intake knows replies only',
  ),
  mayNotImport(
    'http/replies',
    [...ABOVE_HTTP, '**/server/**', '**/routes/**', '**/auth/**', '**/intake/**'],
    'replies know nothing else of http',
  ),
  mayNotImport(
    'grpc',
    [
      '**/redis/**',
      '**/app/**',
      '**/main.js',
      '**/client/**',
      '**/http/routes/**',
      '**/openapi/**',
    ],
    'gRPC is a way in beside the routes',
  ),
  mayNotImport(
    'redis',
    ['**/http/**', '**/metrics/**', ...UPPER_PARTS],
    'redis knows the limiter only',
  ),
  mayNotImport('metrics', ['**/http/**', ...UPPER_PARTS], 'metrics know what they measure'),
  mayNotImport('tracing', ABOVE_TRACING, 'tracing knows what it follows'),
  mayNotImport('tracing/sdk', ABOVE_TRACING, 'tracing knows what it follows'),
  mayNotImport(
    'readiness',
    ['**/http/**', '**/redis/**', ...UPPER_PARTS],
    'readiness asks the limiter',
  ),
  {
    files: ['src/client/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?!node:|\\./|\\.\\./errors\\.js$)',
              message: 'users of the client load nothing of the service, and no package',
              allowTypeImports: true,
            },
          ],
        },
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
          ...['FormData', 'URLSearchParams'],
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      'max-lines': 'off',
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
