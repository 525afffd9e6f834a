import { withCheckedCodes } from './checked-error.js';

/**
 * Expects an answer that was sent instead of one by the app: with a JSON body, and the last of its
 * connection.
 * @returns its correlation id
 */
export function expectTransportError(received: string, status: string): string {
  const [head = '', body = ''] = received.split('\r\n\r\n');
  const [statusLine, ...headers] = head.split('\r\n');
  const { error } = withCheckedCodes(parseInt(status), JSON.parse(body)) as { error: unknown };
  const valueOf = (name: string): string | undefined =>
    headers.find((header) => header.startsWith(`${name}: `))?.slice(name.length + 2);

  expect(statusLine).toBe(`HTTP/1.1 ${status}`);
  expect(error).toMatch(/./);
  expect(withCheckedCodes(parseInt(status), JSON.parse(body))).toStrictEqual({ error });
  expect(valueOf('Content-Type')).toBe('application/json');
  expect(valueOf('Content-Length')).toBe(String(body.length));
  expect(valueOf('Connection')).toBe('close');
  expect(valueOf('Cache-Control')).toBe('no-store');
  expect(valueOf('Content-Security-Policy')).toMatch(/^default-src 'none'/);
  expect(valueOf('X-Correlation-ID')).toMatch(/^[-0-9a-f]{36}$/);
  return valueOf('X-Correlation-ID')!;
}
