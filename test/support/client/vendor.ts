import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

import { useHttpServers } from '../http-servers.js';
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
  const serve = useHttpServers();
  return async (onCall) => {
    const calls: VendorCall[] = [];
    const url = await serve((request, response) => {
      void text(request).then((body) => {
        const call = { request, body, response };
        calls.push(call);
        onCall?.(call);
      });
    });
    return { url, calls, call: (index) => until(() => calls[index]) };
  };
}
