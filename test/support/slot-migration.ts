import type { ClusterNode } from './cluster-node.js';

/** As `redis-cli --cluster reshard` gives it to a node that is slow. */
const MIGRATE_TIMEOUT_MILLIS = 60_000;

export interface MigrationSteps {
  /** The keys moved at a time; one where not given. */
  readonly keysPerStep?: number;
  /**
   * Called when the slot is being moved and none of its keys has gone, and again after each step,
   * with the number of keys gone so far.
   */
  readonly betweenSteps?: (moved: number) => Promise<void> | void;
}

export interface SlotMigration extends MigrationSteps {
  readonly slot: number;
  readonly source: ClusterNode;
  readonly target: ClusterNode;
  /** All of the cluster's, source and target included. */
  readonly primaries: readonly ClusterNode[];
}

/**
 * Moves a slot and its keys in the order in which `redis-cli --cluster reshard` does.
 * https://redis.io/docs/latest/commands/cluster-setslot/#redis-cluster-live-resharding-explained
 */
export async function migrateSlot(migration: SlotMigration): Promise<void> {
  const { slot, source, target, primaries, keysPerStep = 1, betweenSteps } = migration;
  await target.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id);
  await source.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.id);
  for (let moved = 0; ;) {
    await betweenSteps?.(moved);
    const keys = (await source.command('CLUSTER', 'GETKEYSINSLOT', slot, keysPerStep)) as string[];
    if (keys.length === 0) break;
    const address = ['127.0.0.1', target.port, ''] as const;
    await source.command('MIGRATE', ...address, 0, MIGRATE_TIMEOUT_MILLIS, 'KEYS', ...keys);
    moved += keys.length;
  }
  // The target first: were the source to go first, and fail then, the slot would have no owner.
  const others = primaries.filter((node) => node !== source && node !== target);
  for (const node of [target, source, ...others]) {
    await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', target.id);
  }
}
