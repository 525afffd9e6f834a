import type { Headers } from '../replies/reply.js';

/** The page that shows the document. Its paths are relative, so that a proxy may put it below another. */
export const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sluice: the HTTP API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/phone.css">
<main id="document"></main>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</html>
`;

/** The script of the page. A token that is typed in is kept in memory only. */
export const START_SCRIPT = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#document',
  deepLinking: true,
  validatorUrl: null,
});
`;

/**
 * On a phone the library's tables of parameters and responses are wider than the screen. Their cells are put below each
 * other, and content that can't be broken scrolls in its own box. The document has no links between operations.
 */
export const PHONE_STYLE = `@media (max-width: 640px) {
  .swagger-ui .parameters,
  .swagger-ui .responses-table,
  .swagger-ui :is(.parameters, .responses-table) > tbody,
  .swagger-ui :is(.parameters, .responses-table) > tbody > tr,
  .swagger-ui :is(.parameters, .responses-table) > tbody > tr > td {
    display: block;
  }
  .swagger-ui :is(.parameters, .responses-table) > thead,
  .swagger-ui .responses-table > tbody > tr > .response-col_links {
    display: none;
  }
  .swagger-ui :is(.parameters, .responses-table) > tbody > tr > td {
    width: auto;
    max-width: none;
    padding: 0.3rem 0;
  }
  .swagger-ui .response-col_status {
    font-weight: bold;
  }
  .swagger-ui :is(.responses-inner, .table-container) {
    padding: 0.6rem;
  }
  .swagger-ui :is(.headers, .model-box, .renderedMarkdown, pre) {
    display: block;
    max-width: 100%;
    overflow-x: auto;
    overflow-wrap: break-word;
  }
}
`;

/** The files that the page loads, by their types. */
export const PAGE_FILES = {
  'phone.css': 'text/css; charset=utf-8',
  'start.js': 'text/javascript; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
} as const;

export type PageFile = keyof typeof PAGE_FILES;

export const PAGE_FILE_NAMES = Object.keys(PAGE_FILES) as [PageFile, ...PageFile[]];

/** The page loads from and connects to this service only, and runs no inline scripts. */
export const PAGE_HEADERS: Headers = [
  'Cache-Control',
  'no-store',
  'Content-Security-Policy',
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // The library's icons are in its style sheet.
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy',
  'no-referrer',
];
