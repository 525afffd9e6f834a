import { type ClusterNode, selfOf } from './cluster-node.js';
import { until } from './until.js';

/** FORCE where the primary does not answer, TAKEOVER also where no majority does. */
export type FailoverMode = 'FORCE' | 'TAKEOVER';

/** So long Redis tries a failover that it was asked for, before it gives up. */
const FAILOVER_TIMEOUT_MILLIS = 5_000;

/** Has a replica promoted, and resolves when it says so itself. */
export async function promote(replica: ClusterNode, mode?: FailoverMode): Promise<void> {
  const epochBefore = (await selfOf(replica)).configEpoch;
  const ask = () => replica.command('CLUSTER', 'FAILOVER', ...(mode ? [mode] : []));
  await ask();
  let askedAt = Date.now();
  await until(async () => {
    const { isPrimary, configEpoch } = await selfOf(replica);
    // Without an epoch of its own, the others would soon make it a replica again.
    if (isPrimary && configEpoch > epochBefore) return true;
    if (!isPrimary && Date.now() - askedAt > FAILOVER_TIMEOUT_MILLIS) {
      // Other primaries refuse their votes soon after another failover.
      await ask();
      askedAt = Date.now();
    }
    return false;
  });
}
