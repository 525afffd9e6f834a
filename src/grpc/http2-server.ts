import type { Http2Server } from 'node:http2';

import type { Server } from '@grpc/grpc-js';

/**
 * The server of `node:http2` below one of grpc-js, which has no options for most of its bounds, and no way to its
 * streams.
 * @throws Error if this version of grpc-js keeps it elsewhere
 */
export function http2ServerOf(server: Server): Http2Server {
  const { http2Servers } = server as unknown as {
    readonly http2Servers?: ReadonlyMap<Http2Server, unknown>;
  };
  const [http2] = http2Servers?.keys() ?? [];
  if (!http2) throw new Error('this version of @grpc/grpc-js has no http2Servers to bound');
  return http2;
}
