import { httpErrorOf } from '../../../src/http/replies/error-statuses.js';
import { type ErrorCode, errorRow, ERRORS } from '../../../src/service/errors.js';
import { tableRows } from '../../support/docs/tables.js';

/** The headers of an error, as the page writes them. */
function headersOf(code: ErrorCode): string {
  const { retryAfter } = errorRow(code);
  const { header } = httpErrorOf(code);
  const seconds = retryAfter === 'window' ? 'until there may be room' : retryAfter;
  return [
    ...(seconds === undefined ? [] : [`\`Retry-After\`: ${seconds}`]),
    ...(header === undefined
      ? []
      : [header === 'Connection' ? '`Connection: close`' : `\`${header}\``]),
  ].join(', ');
}

/** The sections of the page, in their order: to try again, to fix the request, to give up. */
function sectionOf(code: ErrorCode): number {
  const { status } = httpErrorOf(code);
  if ([429, 503].includes(status)) return 0;
  const isOfTarget = code === 'PATH_NOT_FOUND' || code === 'SLASH_IN_KEY';
  return isOfTarget || [400, 405, 408, 413, 414, 415, 431].includes(status) ? 1 : 2;
}

test('the tables of errors in docs/api.md equal the errors of the service, row by row', () => {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).toSorted(
    (one, other) => sectionOf(one) - sectionOf(other),
  );

  expect(tableRows('docs/api.md', ['Status', 'Code', '`error`', 'When', 'Header'])).toEqual(
    codes.map((code) => {
      const { message, when } = ERRORS[code];
      const { status } = httpErrorOf(code);
      return [String(status), `\`${code}\``, `\`${message}\``, when, headersOf(code)];
    }),
  );
});
