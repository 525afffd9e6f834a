import { fileURLToPath } from 'node:url';

import type { ServiceDefinition, UntypedHandleCall } from '@grpc/grpc-js';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { protoPath as healthProto } from 'grpc-health-check';

import { CallMessage } from './call-message.js';

/** Next to `src` and to `dist`. */
const FOLDER = fileURLToPath(new URL('../../proto', import.meta.url));

export const RATE_LIMIT_SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';

/** Everything that `proto/` describes; messages in JavaScript are as in `messages.ts`. */
export function loadProto(): PackageDefinition {
  return loadSync('envoy/service/ratelimit/v3/rls.proto', {
    includeDirs: [FOLDER],
    keepCase: true,
    longs: Number,
    enums: String,
    defaults: true,
  });
}

/** The definitions that `grpc-health-check` serves. */
export function loadHealthProto(): PackageDefinition {
  return loadSync(healthProto);
}

/**
 * Envoy's rate limit service. A request is passed as a {@link CallMessage}: grpc-js answers an unreadable one as a
 * fault of the server.
 */
export function rateLimitService(
  proto: PackageDefinition,
): ServiceDefinition<{ ShouldRateLimit: UntypedHandleCall }> {
  const { ShouldRateLimit: method } = proto[RATE_LIMIT_SERVICE] as unknown as ReturnType<
    typeof rateLimitService
  >;
  const requestDeserialize = (bytes: Buffer): CallMessage =>
    new CallMessage(bytes, method.requestDeserialize);
  return { ShouldRateLimit: { ...method, requestDeserialize } };
}
