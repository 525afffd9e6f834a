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

test('the table of errors in docs/api.md equals the errors of the service, row by row', () => {
  const codes = Object.keys(ERRORS) as ErrorCode[];

  expect(tableRows('docs/api.md', ['Status', 'Code', '`error`', 'When', 'Header'])).toEqual(
    codes.map((code) => {
      const { message, when } = ERRORS[code];
      const { status } = httpErrorOf(code);
      return [String(status), `\`${code}\``, `\`${message}\``, when, headersOf(code)];
    }),
  );
});
