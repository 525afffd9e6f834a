import type { Entry } from '../../../src/grpc/messages.js';
import type { ConfiguredDescriptor } from '../../../src/import/envoy-ratelimit/limits-file.js';

type Limit = NonNullable<ConfiguredDescriptor['rate_limit']> & {
  readonly isShadow: boolean;
  readonly isQuota: boolean;
};

/**
 * The limit that Envoy's rate limit service applies to a descriptor, by its README: each entry finds the descriptor with its key
 * and value, or else the first whose wildcard matches, or else the one with its key alone. The limit of the last one applies.
 */
export function limitByEnvoy(
  descriptors: readonly ConfiguredDescriptor[],
  entries: readonly Entry[],
): Limit | undefined {
  const [entry, ...others] = entries;
  if (!entry) return undefined;
  const ofKey = descriptors.filter(({ key }) => key === entry.key);
  const found =
    ofKey.find(({ value }) => value === entry.value && value !== '') ??
    ofKey.find(({ value }) => value?.includes('*') && matches(value, entry.value)) ??
    ofKey.find(({ value }) => (value ?? '') === '');
  if (!found) return undefined;
  if (others.length > 0) return limitByEnvoy(found.descriptors ?? [], others);
  return found.rate_limit
    ? {
        ...found.rate_limit,
        isShadow: found.shadow_mode === true,
        isQuota: found.quota_mode === true,
      }
    : undefined;
}

function matches(wildcard: string, value: string): boolean {
  const parts = wildcard.split('*').map((part) => part.replace(/[^\w]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(value);
}
