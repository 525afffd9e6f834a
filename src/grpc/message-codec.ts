import { fileURLToPath } from 'node:url';

import protobuf from 'protobufjs';

import type { RateLimitRequest, RateLimitResponse, Unit } from './messages.js';
import { FRAME_HEAD_BYTES } from './request-frames.js';
import { StrictReader, UnreadableMessage } from './strict-reader.js';

/** Next to `src` and to `dist`. */
const FOLDER = fileURLToPath(new URL('../../proto/', import.meta.url));

const root = new protobuf.Root();
root.resolvePath = (_origin, path) => (path.startsWith('google/') ? path : FOLDER + path);
root.loadSync('envoy/service/ratelimit/v3/rls.proto', { keepCase: true });

const SERVICE = 'envoy.service.ratelimit.v3';
const requestType = root.lookupType(`${SERVICE}.RateLimitRequest`);
const responseType = root.lookupType(`${SERVICE}.RateLimitResponse`);
const codes = root.lookupEnum(`${SERVICE}.RateLimitResponse.Code`).values;
const units = root.lookupEnum(`${SERVICE}.RateLimitResponse.RateLimit.Unit`).values;
// protobufjs would write its code at the first call, for a third of the 20 ms after which Envoy gives up by default.
for (const type of [requestType, responseType]) setUp(type);
/** Names by numbers. */
const overrideUnits = root.lookupEnum('envoy.type.v3.RateLimitUnit').valuesById;

/** A request as protobufjs decodes it: enums are numbers. */
type Decoded = Omit<RateLimitRequest, 'descriptors'> & {
  readonly descriptors: readonly (Omit<
    RateLimitRequest['descriptors'][number],
    'limit' | 'hits_addend'
  > & {
    /** Without a value, which is 0, it has an object that stands for 64 bits. */
    readonly hits_addend: { readonly value: unknown } | null;
    readonly limit: { readonly requests_per_unit: number; readonly unit: number } | null;
  })[];
};

/**
 * Decodes a request. protobufjs writes the code for that itself, from `proto/`.
 * @throws UnreadableMessage
 */
export function decodeRequest(bytes: Buffer): RateLimitRequest {
  let decoded: Decoded;
  try {
    decoded = requestType.decode(new StrictReader(bytes)) as unknown as Decoded;
  } catch (error) {
    if (error instanceof UnreadableMessage) throw error;
    throw new UnreadableMessage('be a RateLimitRequest');
  }
  const { domain, descriptors, hits_addend } = decoded;
  return {
    domain,
    hits_addend,
    descriptors: descriptors.map(({ entries, limit, hits_addend, is_negative_hits }) => ({
      entries,
      limit: limit && {
        requests_per_unit: limit.requests_per_unit,
        unit: (overrideUnits[limit.unit] ?? 'UNKNOWN') as Unit,
      },
      hits_addend: hits_addend && { value: Number(hits_addend.value) },
      is_negative_hits,
    })),
  };
}

/** Encodes a reply with its frame. */
export function encodeReply(reply: RateLimitResponse): Buffer {
  const message = responseType.encode(numbered(reply)).finish();
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, FRAME_HEAD_BYTES);
  return frame;
}

/** A reply with the numbers of its enums. */
function numbered({ overall_code, statuses, response_headers_to_add }: RateLimitResponse): object {
  return {
    overall_code: codes[overall_code],
    statuses: statuses.map(
      ({ code, current_limit: limit, limit_remaining, duration_until_reset }) => ({
        code: codes[code],
        current_limit: limit && {
          requests_per_unit: limit.requests_per_unit,
          unit: units[limit.unit],
          name: limit.name,
        },
        limit_remaining,
        duration_until_reset,
      }),
    ),
    response_headers_to_add,
  };
}

/** Makes protobufjs write the code for a message, and for all messages in it. */
function setUp(type: protobuf.Type): void {
  type.setup();
  for (const { resolvedType } of type.fieldsArray) {
    if (resolvedType instanceof protobuf.Type) setUp(resolvedType);
  }
}
