import type { TopologyName } from '../../topologies/topology.js';
import { startCluster } from './cluster.js';
import { startSentinels } from './sentinel.js';
import { startStandalone } from './standalone.js';
import type { Store } from './store.js';

const STARTS = { standalone: startStandalone, sentinel: startSentinels, cluster: startCluster };

export function startStore(topology: TopologyName): Promise<Store> {
  return STARTS[topology]();
}
