import type { Approval, Decision } from '../decision.js';
import { SluiceDeniedError } from '../errors.js';
import type { CheckOptions, PermitOptions, WaitOptions } from '../options.js';

interface Asked {
  check(key: string, options: CheckOptions): Promise<Decision>;
  wait(key: string, options: WaitOptions): Promise<Decision>;
}

/**
 * Waits for an approval, or asks once if `wait` is false.
 * @param options.quota whether an approval of a single question has its `quota`, as of `CheckOptions`
 * @throws SluiceDeniedError if it is denied; as `check`
 */
export async function approvalOf(
  client: Asked,
  key: string,
  options: PermitOptions & Pick<CheckOptions, 'quota'>,
): Promise<Approval> {
  const { wait = true, maxWaitMillis, onProgress, quota, ...asking } = options;
  const decision = await (wait
    ? client.wait(key, { ...asking, maxWaitMillis, onProgress })
    : client.check(key, { ...asking, quota }));
  if (decision.approved) return decision;
  throw new SluiceDeniedError(key, decision.retryAfterSeconds, decision.limit);
}
