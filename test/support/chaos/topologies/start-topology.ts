import { startCluster } from './cluster.js';
import { startSentinels } from './sentinel.js';
import { startStandalone } from './standalone.js';
import type { Topology, TopologyName } from './topology.js';

const STARTS = { standalone: startStandalone, sentinel: startSentinels, cluster: startCluster };

export function startTopology(name: TopologyName, replicas: number): Promise<Topology> {
  return STARTS[name](replicas);
}
