import type { CheckResult, ReleaseResult } from '../../src/api/bulk-schemas.js';
import { withCheckedCodes } from './checked-error.js';
import type { Answer } from './http-client.js';
import { requestText } from './raw-http.js';

export const JSON_HEADERS = { 'Content-Type': 'application/json' };

type Headers = Readonly<Record<string, string>>;

/** Sends a body to `/rate` unchanged. */
export async function sendBody(
  url: string,
  method: string,
  body: string | Buffer,
  headers: Headers = JSON_HEADERS,
): Promise<Answer> {
  const answer = await fetch(`${url}/rate`, { method, headers, body });
  const text = await answer.text();
  return {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    text,
    json: () => withCheckedCodes(answer.status, JSON.parse(text)),
  };
}

/** The results of a bulk request. */
async function results<Result>(
  url: string,
  method: string,
  elements: readonly unknown[],
  headers: Headers,
): Promise<Result[]> {
  const body = JSON.stringify(elements);
  const answer = await sendBody(url, method, body, { ...JSON_HEADERS, ...headers });
  if (answer.status !== 200) throw new Error(`not answered: ${answer.status} ${answer.text}`);
  return answer.json() as Result[];
}

export function checkMany(
  url: string,
  elements: readonly unknown[],
  headers: Headers = {},
): Promise<CheckResult[]> {
  return results(url, 'POST', elements, headers);
}

export function releaseMany(
  url: string,
  elements: readonly unknown[],
  headers: Headers = {},
): Promise<ReleaseResult[]> {
  return results(url, 'DELETE', elements, headers);
}

/** The text of a bulk request, for a connection on which a test writes HTTP by hand. */
export function callText(
  method: string,
  elements: readonly unknown[],
  headers: Headers = {},
): string {
  const body = Buffer.from(JSON.stringify(elements)).toString('latin1');
  const all = { ...JSON_HEADERS, 'Content-Length': String(body.length), ...headers };
  return requestText(method, '/rate', all) + body;
}
