import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { request as requestOverTls } from 'node:https';

import { withCheckedCodes } from './checked-error.js';
import { trusted } from './trust.js';

/** A complete answer. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body, without the codes of errors, which must be right. Throws if it is not JSON. */
  readonly json: () => unknown;
}

/** A request whose answer is still to come. */
export interface PendingRequest {
  readonly answer: Promise<Answer>;
  /** Closes the connection, like a client that stops waiting. */
  disconnect(): void;
}

/**
 * Sends one request on a connection of its own. Unlike `fetch`, it sends the path unchanged: a
 * URL object would turn `/rate/%2e%2e` into `/`.
 */
export function begin(
  url: string,
  method: string,
  path: string,
  headers: OutgoingHttpHeaders = {},
): PendingRequest {
  const { protocol, hostname, port } = new URL(url);
  const options = { hostname, port, method, path, headers, agent: false } as const;
  const client =
    protocol === 'https:' ? requestOverTls({ ...options, ca: trusted }) : request(options);
  const answer = new Promise<Answer>((resolve, reject) => {
    client.on('error', reject);
    client.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          text,
          json: () => withCheckedCodes(response.statusCode!, JSON.parse(text)),
        });
      });
    });
  });
  // A test that disconnects does not await this error.
  answer.catch(() => undefined);
  client.end();
  return { answer, disconnect: () => void client.destroy() };
}

export function send(
  url: string,
  method: string,
  path: string,
  headers: OutgoingHttpHeaders = {},
): Promise<Answer> {
  return begin(url, method, path, headers).answer;
}

/** The path of a key's check. */
export function ratePath(key: string): string {
  return `/rate/${encodeURIComponent(key)}`;
}

/** Sends a check that must be approved. @returns its request id */
export async function approve(url: string, key: string, query = ''): Promise<string> {
  return approvedId(await send(url, 'POST', `${ratePath(key)}${query}`));
}

/** The request id of an approval. Throws if the answer is not an approval. */
export function approvedId({ status, text, json }: Answer): string {
  if (status !== 200) throw new Error(`not approved: ${status} ${text}`);
  return (json() as { request_id: string }).request_id;
}

/** The status of an answer, and its parsed body. */
export function bodyOf({ status, json }: Answer): [number, unknown] {
  return [status, json()];
}

/** Checks a key `times` times, one after the other, whatever the answers are. */
export async function checkTimes(
  url: string,
  key: string,
  times: number,
  query = '',
): Promise<void> {
  for (let i = 0; i < times; i += 1) await send(url, 'POST', ratePath(key) + query);
}
