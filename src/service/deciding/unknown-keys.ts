import type { Settings } from '../../config/settings.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { serviceError } from '../service-error.js';

/** What says what applies to a key, and what becomes of keys without a rule. */
export interface KeyRules {
  /** What applies to a key as of now. */
  readonly policyOf: (key: string) => KeyPolicy;
  readonly settings: Pick<Settings, 'UNKNOWN_KEYS'>;
}

/** @throws ServiceError KEY_UNKNOWN if no rule matches the key, and such keys are rejected */
export function rejectUnknownKey(
  { isKnown }: Pick<KeyPolicy, 'isKnown'>,
  { UNKNOWN_KEYS }: KeyRules['settings'],
): void {
  if (!isKnown && UNKNOWN_KEYS === 'deny') throw serviceError('KEY_UNKNOWN', {});
}
