import type { RejectedReport, RemainingReport } from './limiter.js';
import type { Limits } from './limits.js';

/**
 * Why a key with these limits can't take a report.
 * @returns undefined if it can
 */
export function rejectionOf(
  limits: Limits,
  { limit: wanted }: Pick<RemainingReport, 'limit'>,
): RejectedReport | undefined {
  const limit = limits.find(({ name }) => name === wanted);
  if (!limit) return { rejected: 'limit', further: limits.flatMap(({ name = [] }) => name) };
  const { name: algorithm } = limit.algorithm;
  return algorithm === 'fixed_window' ? undefined : { rejected: 'algorithm', algorithm };
}
