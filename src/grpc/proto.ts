import { fileURLToPath } from 'node:url';

import type { ServiceDefinition, UntypedHandleCall } from '@grpc/grpc-js';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { protoPath as healthProto } from 'grpc-health-check';

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

/** Envoy's rate limit service. */
export function rateLimitService(
  proto: PackageDefinition,
): ServiceDefinition<{ ShouldRateLimit: UntypedHandleCall }> {
  return proto[RATE_LIMIT_SERVICE] as unknown as ReturnType<typeof rateLimitService>;
}
