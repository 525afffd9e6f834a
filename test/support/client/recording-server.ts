import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

import { ERRORS } from '../../../src/service/errors.js';
import { useHttpServers } from '../http-servers.js';
import { until } from '../until.js';

/** A call as it was received. */
export interface RecordedCall {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly elements: readonly { readonly key: string; readonly request_id?: string }[];
  /** Sends a result for each element; by default an approval, named after its key. */
  answer(resultOf?: (element: { key: string }, i: number) => object): void;
  /** Sends a body, by default with 200. */
  succeed(body: object | null, status?: number): void;
  /** Sends the place of a check that still waits. */
  place(position: number, waitMillis: number): void;
  /** Sends an error instead of results. */
  fail(status: number, error: string, retryAfter?: number): void;
  /** Sends a status with `Retry-After`, and no body. */
  refuse(status: number, retryAfter: string): void;
  /** Closes the connection without an answer. */
  lose(): void;
  /** Makes the answer say that the server stops. */
  stopping(): void;
}

/** A server instead of Sluice that records calls, and answers when the test says so. */
export interface RecordingServer {
  readonly url: string;
  readonly calls: readonly RecordedCall[];
  /** The call with this number, past or future; the first is 0. */
  call(index: number): Promise<RecordedCall>;
}

export const approvalOf = ({ key }: { key: string }): object => ({
  status: 200,
  request_id: `id-of-${key}`,
});

/** Servers for the tests of one file, each of which ends with its test. */
export function useRecordingServers(): (
  onCall?: (call: RecordedCall) => void,
) => Promise<RecordingServer> {
  const serve = useHttpServers();
  return async (onCall) => {
    const calls: RecordedCall[] = [];
    const url = await serve((request, response) => {
      void text(request).then((body) => {
        const { method = '', url: path = '', headers } = request;
        const elements = (body === '' ? [] : JSON.parse(body)) as RecordedCall['elements'];
        const call = { method, path, headers, elements, ...answersOf(response, elements) };
        calls.push(call);
        onCall?.(call);
      });
    });
    return { url, calls, call: (index) => until(() => calls[index]) };
  };
}

function answersOf(
  response: ServerResponse,
  elements: RecordedCall['elements'],
): Pick<RecordedCall, 'answer' | 'succeed' | 'place' | 'fail' | 'refuse' | 'lose' | 'stopping'> {
  return {
    answer: (resultOf = approvalOf) => {
      response.end(JSON.stringify(elements.map(resultOf).map(withCode)));
    },
    succeed: (body, status = 200) => {
      response.statusCode = status;
      response.end(JSON.stringify(body));
    },
    place: (position, waitMillis) => {
      response.statusCode = 202;
      response.end(JSON.stringify({ request_id: 'id', position, waitMillis }));
    },
    fail: (status, error, retryAfter) => {
      if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter);
      response.statusCode = status;
      response.end(JSON.stringify(withCode({ error })));
    },
    refuse: (status, retryAfter) => {
      response.writeHead(status, { 'Retry-After': retryAfter }).end();
    },
    lose: () => {
      response.socket?.destroy();
    },
    stopping: () => {
      response.setHeader('Connection', 'close');
    },
  };
}

/** An error gets the code that Sluice gives it. */
function withCode(result: { readonly error?: string }): object {
  const [code] = Object.entries(ERRORS).find(([, { message }]) => message === result.error) ?? [];
  return code === undefined ? result : { ...result, code };
}
