import type { Settings } from '../../config/settings.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { serviceError } from '../service-error.js';

/** @throws ServiceError KEY_UNKNOWN if no rule matches the key, and such keys are rejected */
export function rejectUnknownKey(
  { isKnown }: Pick<KeyPolicy, 'isKnown'>,
  { UNKNOWN_KEYS }: Pick<Settings, 'UNKNOWN_KEYS'>,
): void {
  if (!isKnown && UNKNOWN_KEYS === 'deny') throw serviceError('KEY_UNKNOWN', {});
}
