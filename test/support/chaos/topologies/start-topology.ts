import { startCluster } from './cluster.js';
import { startSentinels } from './sentinel.js';
import { startStandalone } from './standalone.js';
import type { Topology, TopologyName } from './topology.js';

export function startTopology(name: TopologyName, replicas: number): Promise<Topology> {
  switch (name) {
    case 'standalone':
      return startStandalone(replicas);
    case 'sentinel':
      return startSentinels();
    case 'cluster':
      return startCluster();
  }
}
