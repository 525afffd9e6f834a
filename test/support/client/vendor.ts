import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

import { until } from '../until.js';

/** A call of a vendor, which the test answers. */
export interface VendorCall {
  readonly request: IncomingMessage;
  readonly body: string;
  readonly response: ServerResponse;
}

/** A server instead of a vendor. */
export interface Vendor {
  readonly url: string;
  readonly calls: readonly VendorCall[];
  /** The call with this number, past or future; the first is 0. */
  call(index: number): Promise<VendorCall>;
}

/** Vendors for the tests of one file, each of which ends with its test. */
export function useVendors(): (onCall?: (call: VendorCall) => void) => Promise<Vendor> {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  });
  return async (onCall) => {
    const calls: VendorCall[] = [];
    const server = createServer((request, response) => {
      void text(request).then((body) => {
        const call = { request, body, response };
        calls.push(call);
        onCall?.(call);
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    stops.push(async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    });
    const { port } = server.address() as AddressInfo;
    return {
      url: `http://127.0.0.1:${port}`,
      calls,
      call: (index) => until(() => calls[index]),
    };
  };
}
