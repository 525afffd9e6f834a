import { type ClusterNode, selfOf } from './cluster-node.js';
import { until } from './until.js';

/** How long Redis tries a requested failover before it gives up. */
const FAILOVER_TIMEOUT_MILLIS = 5_000;

/** Promotes a replica, and resolves when it reports that it is a primary. */
export async function promote(replica: ClusterNode): Promise<void> {
  const epochBefore = (await selfOf(replica)).configEpoch;
  const ask = () => replica.command('CLUSTER', 'FAILOVER');
  await ask();
  let askedAt = Date.now();
  await until(async () => {
    const { isPrimary, configEpoch } = await selfOf(replica);
    // Without a new epoch, the other nodes would soon make it a replica again.
    if (isPrimary && configEpoch > epochBefore) return true;
    if (!isPrimary && Date.now() - askedAt > FAILOVER_TIMEOUT_MILLIS) {
      // Other primaries do not vote soon after another failover.
      await ask();
      askedAt = Date.now();
    }
    return false;
  });
}
