import type { Range } from '../common/whole-number.js';
import { BOUNDS } from '../limiter/bounds.js';
import { type ServiceError, serviceError } from '../service/service-error.js';
import type { CallMessage } from './call-message.js';
import type { Descriptor, RateLimitRequest } from './messages.js';
import { NOT_UTF8, UnreadableMessage } from './strict-reader.js';

/** Envoy's routes have a few descriptors. Each is a check, and all checks of a request are decided at once. */
const MAX_DESCRIPTORS = 100;

/**
 * The request in a message. Types are those of the protocol; this checks values, without a schema: to go through one would cost
 * a call more than its decision.
 * @throws ServiceError INVALID_PARAMETER that names the first field that is wrong
 */
export function validRequest(message: CallMessage): RateLimitRequest {
  const request = requestIn(message);
  const { domain, descriptors, hits_addend: hits } = request;
  demandName('domain', domain);
  if (descriptors.length === 0) throw invalid('descriptors', 'have at least one descriptor');
  if (descriptors.length > MAX_DESCRIPTORS) {
    throw invalid('descriptors', `have at most ${MAX_DESCRIPTORS} descriptors`);
  }
  descriptors.forEach(demandDescriptor);
  if (hits > BOUNDS.hits.max) throw invalid('hits_addend', `be at most ${BOUNDS.hits.max}`);
  return request;
}

export function invalid(parameter: string, must: string): ServiceError {
  return serviceError('INVALID_PARAMETER', { parameter, must });
}

function requestIn(message: CallMessage): RateLimitRequest {
  try {
    return message.take();
  } catch (error) {
    if (error instanceof UnreadableMessage) throw invalid('the message', error.message);
    throw error;
  }
}

function demandDescriptor({ entries, limit, hits_addend }: Descriptor, index: number): void {
  const path = (field: string): string => `descriptors[${index}].${field}`;
  if (entries.length === 0) throw invalid(path('entries'), 'have at least one entry');
  entries.forEach(({ key, value }, i) => {
    if (key === '' || key === NOT_UTF8) demandName(path(`entries[${i}].key`), key);
    if (value === NOT_UTF8) demandText(path(`entries[${i}].value`), value);
  });
  // A limit of 0 denies all. An error would let the request pass a gateway that fails open.
  if (limit) {
    demandAtMost(BOUNDS.maxRequests, path('limit.requests_per_unit'), limit.requests_per_unit);
  }
  // 0 asks without counting.
  if (hits_addend) {
    demandAtMost(BOUNDS.hits, path('hits_addend.value'), hits_addend.value);
  }
}

function demandName(parameter: string, text: string): void {
  if (text === '') throw invalid(parameter, 'not be empty');
  demandText(parameter, text);
}

function demandText(parameter: string, text: string): void {
  if (text === NOT_UTF8) throw invalid(parameter, 'be valid UTF-8');
}

function demandAtMost({ max }: Range, parameter: string, value: number): void {
  if (value > max) throw invalid(parameter, `be at most ${max}`);
}
