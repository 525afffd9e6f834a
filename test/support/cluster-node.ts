import type { RedisProcess } from './redis-process.js';

/** A server of a cluster, and its id in the cluster, which it keeps with its data. */
export type ClusterNode = RedisProcess & { readonly id: string };

/** A line of a node's CLUSTER NODES, about itself or another node. */
export interface NodeEntry {
  readonly id: string;
  readonly isSelf: boolean;
  readonly isPrimary: boolean;
  /** Of a replica: the id of its primary. */
  readonly primaryId: string;
  /** Of a replica: the epoch of its primary. */
  readonly configEpoch: number;
  /** In Redis's form: `0-5460 7000`, without slots that are being moved. */
  readonly slots: string;
}

/**
 * Every node as `node` sees it.
 * https://redis.io/docs/latest/commands/cluster-nodes/
 */
export async function viewOf(node: RedisProcess): Promise<NodeEntry[]> {
  const lines = ((await node.command('CLUSTER', 'NODES')) as string).trim().split('\n');
  return lines.map((line) => {
    const [id, , flagList, primaryId, , , configEpoch, , ...slots] = line.split(' ');
    const flags = flagList!.split(',');
    return {
      id: id!,
      isSelf: flags.includes('myself'),
      isPrimary: flags.includes('master'),
      primaryId: primaryId!,
      configEpoch: Number(configEpoch),
      slots: slots.filter((range) => !range.startsWith('[')).join(' '),
    };
  });
}

/** The entry of `node` about itself. */
export async function selfOf(node: RedisProcess): Promise<NodeEntry> {
  return (await viewOf(node)).find(({ isSelf }) => isSelf)!;
}

/** Whether `node` sees the cluster as working, and copies from its primary if it is a replica. */
export async function isHealthy(node: RedisProcess): Promise<boolean> {
  const cluster = (await node.command('CLUSTER', 'INFO')) as string;
  const replication = (await node.command('INFO', 'replication')) as string;
  return (
    cluster.includes('cluster_state:ok') &&
    cluster.includes('cluster_slots_ok:16384') &&
    /role:master|master_link_status:up/.test(replication)
  );
}

/** Whether `slots`, in Redis's form, include this slot. */
export function covers(slots: string, slot: number): boolean {
  return slots.split(' ').some((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return range !== '' && first! <= slot && slot <= last!;
  });
}
